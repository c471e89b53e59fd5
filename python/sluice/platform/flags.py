"""Command-line flags, as programs define and read them.

    tf.app.flags.DEFINE_integer("task_index", 0, "Index of the task")
    FLAGS = tf.app.flags.FLAGS

Flags are parsed by tf.app.run, or when one is first read.
"""

import sys

from sluice.platform import flag_types
from sluice.platform import tf_logging
from sluice.platform.flag_types import *  # noqa: F401,F403


class FlagValues(object):
    """All flags by name; attributes are their values."""

    def __init__(self):
        self.__dict__["__flags"] = {}
        self.__dict__["__parsed"] = False
        self.__dict__["__implicit"] = False
        self.__dict__["__argv"] = None

    def _flags(self):
        return self.__dict__["__flags"]

    # ---- Definition ----

    def __setitem__(self, name, flag):
        flags = self._flags()
        if not isinstance(flag, flag_types.Flag):
            raise IllegalFlagValueError(flag)
        if not isinstance(name, str) or not name:
            raise Error("Flag name must be a string")
        for key in filter(None, (name, flag.short_name)):
            other = flags.get(key)
            if other is not None and other is not flag and \
                    not flag.allow_override and not other.allow_override:
                raise DuplicateFlagError.of(key, other, flag)
            flags[key] = flag
        if self.__dict__["__implicit"]:
            # A flag was read before this one was defined; its value is on the
            # command line still.
            self._parse_again(flag)

    def __getitem__(self, name):
        return self._flags()[name]

    def __delattr__(self, name):
        flags = self._flags()
        if name not in flags:
            raise AttributeError(name)
        flag = flags[name]
        for key in [k for k, f in flags.items() if f is flag]:
            del flags[key]

    def remove_flag_values(self, flag_values):
        for name in list(getattr(flag_values, "_flags", lambda: flag_values)()):
            if name in self:
                delattr(self, name)

    def append_flag_values(self, flag_values):
        for name, flag in flag_values._flags().items():
            if name == flag.name:
                self[name] = flag

    # ---- Reading and setting ----

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        flags = self._flags()
        if name not in flags:
            raise AttributeError(name)
        if not self.is_parsed():
            self._parse_implicitly()
        return flags[name].value

    def __setattr__(self, name, value):
        flags = self._flags()
        if name not in flags:
            raise AttributeError(name)
        flags[name].value = value
        flags[name].using_default_value = False
        self._validate([flags[name]])

    def set_default(self, name, value):
        if name not in self._flags():
            raise UnrecognizedFlagError(name)
        self._flags()[name].set_default(value)

    def get_flag_value(self, name, default):
        value = getattr(self, name)
        return default if value is None else value

    def __contains__(self, name):
        return name in self._flags()

    has_key = __contains__

    def __iter__(self):
        return iter(sorted(set(f.name for f in self._flags().values())))

    def __len__(self):
        return len(self._flags())

    def __dir__(self):
        return sorted(self._flags())

    def flag_values_dict(self):
        return {f.name: f.value for f in self._flags().values()}

    def flags_by_module_dict(self):
        modules = {}
        for name in self:
            flag = self._flags()[name]
            modules.setdefault(flag.module, []).append(flag)
        return modules

    def flags_into_string(self):
        return "".join(
            "\n".join(f.serialize()) + "\n" for f in map(self._flags().get, self)
            if f.value is not None)

    def append_flags_into_file(self, filename):
        with open(filename, "a") as out:
            out.write(self.flags_into_string())

    # ---- Parsing ----

    def is_parsed(self):
        return self.__dict__["__parsed"]

    def mark_as_parsed(self):
        self.__dict__["__parsed"] = True

    def unparse_flags(self):
        for flag in self._flags().values():
            flag.unparse()
        self.__dict__["__parsed"] = False
        self.__dict__["__implicit"] = False

    def _parse_flags(self, args=None):
        """Programs of the first releases call this."""
        self(sys.argv if args is None else [sys.argv[0]] + list(args),
             known_only=True)

    def _parse_implicitly(self):
        self(sys.argv, known_only=True)
        self.__dict__["__implicit"] = True

    def _parse_again(self, flag):
        argv = self.__dict__["__argv"]
        if argv:
            self._parse(argv[1:], known_only=True, only=flag)

    def __call__(self, argv, known_only=False):
        """Parses `argv` and returns it without the flags it understood."""
        if isinstance(argv, (str, bytes)):
            raise TypeError("argv should be a tuple/list of strings, not "
                            "bytes or string.")
        argv = list(argv)
        if not argv:
            raise ValueError("argv cannot be an empty list, and must contain "
                             "the program name as the first element.")
        rest = self._parse(argv[1:], known_only)
        self.__dict__["__argv"] = argv
        self.__dict__["__parsed"] = True
        self.__dict__["__implicit"] = False
        self._validate(set(self._flags().values()))
        return argv[:1] + rest

    def _parse(self, words, known_only, only=None):
        flags = self._flags()
        rest, unknown, fine = [], [], set()
        words = list(words)
        while words:
            word = words.pop(0)
            if word == "--":
                rest.append(word)
                rest.extend(words)
                break
            if not word.startswith("-") or word == "-":
                rest.append(word)
                continue
            name, equals, value = word.lstrip("-").partition("=")
            if not equals:
                value = None
            if name in ("undefok", "flagfile") and name not in flags:
                if value is None:
                    if not words:
                        raise Error("Missing value for flag --%s" % name)
                    value = words.pop(0)
                if name == "undefok":
                    fine.update(v.strip() for v in value.split(","))
                else:
                    words = _read_flagfile(value) + words
                continue
            if name in ("help", "helpshort", "helpfull", "?") and \
                    name not in flags:
                if only is None:
                    self._print_help(name == "helpfull")
                continue
            flag = flags.get(name)
            if flag is None and name.startswith("no"):
                flag = flags.get(name[2:])
                if flag is not None and flag.boolean:
                    if value is not None:
                        raise IllegalFlagValueError(
                            "flag --%s=%s: no value is allowed" %
                            (name, value))
                    value = "false"
                else:
                    flag = None
            if flag is None:
                unknown.append((name, word))
                rest.append(word)
                continue
            if value is None:
                if flag.boolean:
                    value = "true"
                elif not words:
                    raise Error("Missing value for flag --%s" % name)
                else:
                    value = words.pop(0)
            if only is None or flag is only:
                flag.parse(value)
        fine |= {"no" + name for name in fine}
        rest = [w for w in rest if w not in {word for name, word in unknown
                                             if name in fine}]
        unknown = [name for name, _ in unknown if name not in fine]
        if unknown and not known_only:
            raise UnrecognizedFlagError(unknown[0])
        return rest

    def _validate(self, flags):
        for flag in flags:
            for check, message in flag.validators:
                if not check(flag.value):
                    raise IllegalFlagValueError(
                        "flag --%s=%s: %s" % (flag.name, flag.value, message))

    # ---- Help ----

    def get_help(self, prefix="", full=True):
        lines = []
        for module, flags in sorted(self.flags_by_module_dict().items()):
            if not full and module != "__main__":
                continue
            lines.append("\n%s:" % (sys.argv[0] if module == "__main__"
                                    else module))
            for flag in flags:
                lines.append("%s  --%s%s: %s" % (
                    prefix, "[no]" if flag.boolean else "", flag.name,
                    flag.help))
                if flag.default is not None:
                    lines.append("%s    (default: %r)" % (prefix,
                                                          flag.default))
        return "\n".join(lines)

    def main_module_help(self):
        return self.get_help(full=False)

    def __str__(self):
        return self.get_help()

    def _print_help(self, full):
        doc = sys.modules["__main__"].__doc__
        print("\n%s\nflags:\n%s" % (doc or "USAGE: %s [flags]" % sys.argv[0],
                                    self.get_help(full=full)))
        if not full:
            print("\nTry --helpfull to get a list of all flags.")
        sys.exit(1)


def _read_flagfile(path):
    try:
        with open(path) as lines:
            words = [line.strip() for line in lines]
    except OSError as e:
        raise CantOpenFlagFileError("ERROR:: Unable to open flagfile: %s" % e)
    return [w for w in words if w and not w.startswith(("#", "//"))]


FLAGS = FlagValues()


def _module():
    """The module that defines a flag: the first caller outside of here."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name not in (__name__, flag_types.__name__):
            return name
        frame = frame.f_back
    return "__main__"


def DEFINE_flag(flag, flag_values=FLAGS, module_name=None, required=False):
    flag.module = module_name or _module()
    flag_values[flag.name] = flag
    if required:
        mark_flag_as_required(flag.name, flag_values)


def DEFINE(parser, name, default, help, flag_values=FLAGS, serializer=None,
           module_name=None, required=False, **args):
    DEFINE_flag(flag_types.Flag(parser, name, default, help, **args),
                flag_values, module_name, required)


_OLD_NAMES = {"flag_name": "name", "default_value": "default",
              "docstring": "help"}


def _with_old_names(define):
    """Accepts the keyword names of the first releases."""
    def wrapped(*args, **kwargs):
        for old, new in _OLD_NAMES.items():
            if old in kwargs:
                tf_logging.warning(
                    "Use of the keyword argument names (flag_name, "
                    "default_value, docstring) is deprecated, please use "
                    "(name, default, help) instead.")
                kwargs[new] = kwargs.pop(old)
        return define(*args, **kwargs)
    wrapped.__name__ = define.__name__
    wrapped.__doc__ = define.__doc__
    return wrapped


@_with_old_names
def DEFINE_string(name, default, help, flag_values=FLAGS, **args):
    DEFINE(flag_types.ArgumentParser(), name, default, help, flag_values,
           **args)


@_with_old_names
def DEFINE_boolean(name, default, help, flag_values=FLAGS, **args):
    DEFINE(flag_types.BooleanParser(), name, default, help, flag_values,
           **args)


DEFINE_bool = DEFINE_boolean


@_with_old_names
def DEFINE_float(name, default, help, lower_bound=None, upper_bound=None,
                 flag_values=FLAGS, **args):
    DEFINE(flag_types.FloatParser(lower_bound, upper_bound), name, default,
           help, flag_values, **args)


@_with_old_names
def DEFINE_integer(name, default, help, lower_bound=None, upper_bound=None,
                   flag_values=FLAGS, **args):
    DEFINE(flag_types.IntegerParser(lower_bound, upper_bound), name, default,
           help, flag_values, **args)


def DEFINE_enum(name, default, enum_values, help, flag_values=FLAGS,
                module_name=None, required=False, case_sensitive=True, **args):
    DEFINE(flag_types.EnumParser(enum_values, case_sensitive), name, default,
           "<%s>: %s" % ("|".join(enum_values), help), flag_values,
           module_name=module_name, required=required, **args)


def DEFINE_enum_class(name, default, enum_class, help, flag_values=FLAGS,
                      module_name=None, case_sensitive=False, required=False,
                      **args):
    DEFINE(flag_types.EnumClassParser(enum_class, case_sensitive), name,
           default, help, flag_values, module_name=module_name,
           required=required, **args)


def DEFINE_list(name, default, help, flag_values=FLAGS, required=False,
                **args):
    DEFINE(flag_types.ListParser(","), name, default, help, flag_values,
           required=required, **args)


def DEFINE_spaceseplist(name, default, help, comma_compat=False,
                        flag_values=FLAGS, required=False, **args):
    DEFINE(flag_types.ListParser(None, comma_compat), name, default, help,
           flag_values, required=required, **args)


def DEFINE_multi(parser, serializer, name, default, help, flag_values=FLAGS,
                 module_name=None, required=False, **args):
    DEFINE_flag(flag_types.MultiFlag(parser, name, default, help, **args),
                flag_values, module_name, required)


def DEFINE_multi_string(name, default, help, flag_values=FLAGS, required=False,
                        **args):
    DEFINE_multi(flag_types.ArgumentParser(), None, name, default, help,
                 flag_values, required=required, **args)


def DEFINE_multi_integer(name, default, help, lower_bound=None,
                         upper_bound=None, flag_values=FLAGS, required=False,
                         **args):
    DEFINE_multi(flag_types.IntegerParser(lower_bound, upper_bound), None,
                 name, default, help, flag_values, required=required, **args)


def DEFINE_multi_float(name, default, help, lower_bound=None,
                       upper_bound=None, flag_values=FLAGS, required=False,
                       **args):
    DEFINE_multi(flag_types.FloatParser(lower_bound, upper_bound), None, name,
                 default, help, flag_values, required=required, **args)


def DEFINE_multi_enum(name, default, enum_values, help, flag_values=FLAGS,
                      case_sensitive=True, required=False, **args):
    DEFINE_multi(flag_types.EnumParser(enum_values, case_sensitive), None,
                 name, default, help, flag_values, required=required, **args)


def DEFINE_alias(name, original_name, flag_values=FLAGS, module_name=None):
    if original_name not in flag_values:
        raise UnrecognizedFlagError(original_name)
    DEFINE_flag(flag_types.AliasFlag(name, flag_values[original_name]),
                flag_values, module_name)


def register_validator(flag_name, checker,
                       message="Flag validation failed", flag_values=FLAGS):
    flag_values[flag_name].validators.append((checker, message))


def validator(flag_name, message="Flag validation failed", flag_values=FLAGS):
    def decorate(function):
        register_validator(flag_name, function, message, flag_values)
        return function
    return decorate


def mark_flag_as_required(flag_name, flag_values=FLAGS):
    register_validator(
        flag_name, lambda value: value is not None,
        "Flag --%s must have a value other than None." % flag_name,
        flag_values)


def mark_flags_as_required(flag_names, flag_values=FLAGS):
    for name in flag_names:
        mark_flag_as_required(name, flag_values)


def declare_key_flag(flag_name, flag_values=FLAGS):
    pass


def adopt_module_key_flags(module, flag_values=FLAGS):
    pass


def disclaim_key_flags():
    pass
