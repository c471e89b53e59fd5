"""tf.Print and tf.print: tensors on a stream while a step runs."""

from sluice.framework.op_builder import apply_op


def Print(input_, data, message=None, first_n=None, summarize=None,
          name=None):
    """`input_` itself; prints `data` on stderr each time it is computed."""
    return apply_op("Print", name, input=input_, data=list(data),
                    message=message, first_n=first_n, summarize=summarize)
