"""Usage: events.py write|read FOLDER. Event files that one implementation
writes, the others read."""

import glob
import os
import sys

from common import equal, np, run_checks, tf


def write_events(folder):
  x = tf.placeholder(tf.float32, [None], name='x')
  tf.summary.scalar('average', tf.reduce_mean(x))
  tf.summary.histogram('values', x)
  tf.summary.image('picture', tf.reshape(tf.cast(x * 10, tf.uint8),
                                         [1, 2, 2, 1]))
  tf.summary.audio('sound', tf.reshape(x / 10, [1, 4, 1]), 8000)
  tf.summary.text('words', tf.constant(['one', 'two']))
  tf.summary.tensor_summary('raw', x, summary_metadata=tf.SummaryMetadata(
      plugin_data=tf.SummaryMetadata.PluginData(plugin_name='mine')))
  tf.summary.scalar('inside', tf.reduce_max(x), family='group')
  merged = tf.summary.merge_all()
  writer = tf.summary.FileWriter(folder, tf.get_default_graph())
  with tf.Session() as session:
    for step in range(5):
      traced = tf.RunMetadata()
      text = session.run(
          merged, {x: np.arange(4.) + step},
          options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE),
          run_metadata=traced)
      writer.add_summary(text, step)
      writer.add_run_metadata(traced, 'step_%d' % step, step)
  plain = tf.Summary(value=[tf.Summary.Value(tag='plain', simple_value=2.5)])
  writer.add_summary(plain, 9)
  writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 10)
  writer.close()


def files(folder):
  found = glob.glob(os.path.join(folder, '*tfevents*'))
  assert len(found) == 1, found
  return found[0]


def read_events(folder):
  scalars, histograms, pictures, graphs, logs = {}, {}, 0, [], 0
  sounds, tensors, plugins, traces = 0, {}, {}, {}
  version = None
  for event in tf.train.summary_iterator(files(folder)):
    version = version or event.file_version
    if event.graph_def:
      graphs.append(tf.GraphDef.FromString(event.graph_def))
    logs += event.HasField('session_log')
    if event.HasField('tagged_run_metadata'):
      traced = event.tagged_run_metadata
      traces[traced.tag] = tf.RunMetadata.FromString(traced.run_metadata)
    for value in event.summary.value:
      if value.HasField('simple_value'):
        scalars[value.tag, event.step] = value.simple_value
      elif value.HasField('histo'):
        histograms[value.tag, event.step] = value.histo
      elif value.HasField('image'):
        pictures += 1
        image = value.image
        assert (image.height, image.width, image.colorspace) == (2, 2, 1)
        assert image.encoded_image_string.startswith(b'\x89PNG')
      elif value.HasField('audio'):
        sounds += 1
        audio = value.audio
        assert (audio.sample_rate, audio.num_channels,
                audio.length_frames) == (8000, 1, 4)
        assert audio.content_type == 'audio/wav'
        assert audio.encoded_audio_string[:4] == b'RIFF'
      elif value.HasField('tensor'):
        if value.metadata.plugin_data.plugin_name:
          plugins[value.tag] = value.metadata.plugin_data.plugin_name
        tensors[value.tag, event.step] = tf.make_ndarray(value.tensor)
  assert version == 'brain.Event:2', version
  for step in range(5):
    assert scalars['average', step] == 1.5 + step, scalars
    histogram = histograms['values', step]
    assert (histogram.min, histogram.max) == (step, 3 + step)
    assert histogram.num == 4 and sum(histogram.bucket) == 4
  assert scalars['plain', 9] == 2.5
  assert scalars['group/group/inside', 4] == 7, scalars
  assert pictures == 5 and sounds == 5 and logs == 1
  assert plugins == {'words': 'text', 'raw': 'mine'}, plugins
  equal(tensors['raw', 2], np.arange(4) + 2)
  assert tensors['words', 0].tolist() == [b'one', b'two'], tensors
  assert sorted(traces) == ['step_%d' % i for i in range(5)]
  assert traces['step_3'].step_stats.dev_stats
  assert 'x' in [n.name for n in graphs[0].node]


def read_events_with_tensorboard(folder):
  from tensorboard.backend.event_processing import event_accumulator
  loaded = event_accumulator.EventAccumulator(folder)
  loaded.Reload()
  tags = loaded.Tags()
  assert tags['graph'] and tags['meta_graph'], tags
  equal(sorted(tags['run_metadata']), ['step_%d' % i for i in range(5)])
  assert loaded.RunMetadata('step_2').step_stats.dev_stats
  assert 'words' in tags['tensors'] and 'raw' in tags['tensors'], tags
  equal(loaded.PluginTagToContent('text'), {'words': b''})
  if tags['scalars']:
    means = [(e.step, e.value) for e in loaded.Scalars('average')]
    equal(means, [(i, 1.5 + i) for i in range(5)])
    assert loaded.Histograms('values')[0].histogram_value.num == 4
    assert loaded.Images('picture/image/0')[0].width == 2
    assert loaded.Audio('sound/audio/0')[0].sample_rate == 8000
  else:  # Newer ones turn them into tensors.
    equal([e.step for e in loaded.Tensors('average')], range(5))
    for tag in ('values', 'picture/image/0', 'sound/audio/0'):
      assert tag in tags['tensors'] or tag in tags['images'] + tags['audio']


CHECKS = {'write': [write_events], 'read': [read_events]}

if __name__ == '__main__':
  checks = CHECKS[sys.argv[1]]
  # TensorBoard comes with TensorFlow.
  if sys.argv[1] == 'read' and 'Sluice' not in (tf.__doc__ or ''):
    checks = checks + [read_events_with_tensorboard]
  run_checks(checks, sys.argv[2])
