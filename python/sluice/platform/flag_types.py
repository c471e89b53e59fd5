"""Kinds of flags: how the text of one becomes a value."""

import sys

__all__ = [
    "ArgumentParser", "BooleanParser", "CantOpenFlagFileError",
    "DuplicateFlagError", "EnumClassParser", "EnumParser", "Error", "Flag",
    "FloatParser", "IllegalFlagValueError", "IntegerParser", "ListParser",
    "MultiFlag", "UnparsedFlagAccessError", "UnrecognizedFlagError",
    "ValidationError",
]


class Error(Exception):
    """A flag was defined, given or read in a wrong way."""


class CantOpenFlagFileError(Error):
    pass


class DuplicateFlagError(Error):

    @classmethod
    def of(cls, name, first, second):
        modules = [sys.argv[0] if flag.module == "__main__" else flag.module
                   for flag in (first, second)]
        return cls("The flag '%s' is defined twice. First from %s, Second "
                   "from %s.  Description from first occurrence: %s" %
                   (name, modules[0], modules[1], first.help))


class IllegalFlagValueError(Error):
    pass


class UnparsedFlagAccessError(Error):
    pass


class ValidationError(Error):
    pass


class UnrecognizedFlagError(Error):

    def __init__(self, flagname, flagvalue="", suggestions=None):
        self.flagname = flagname
        self.flagvalue = flagvalue
        super().__init__("Unknown command line flag '%s'" % flagname)


class ArgumentParser(object):
    """Text stays text."""

    syntactic_help = ""

    def parse(self, argument):
        if not isinstance(argument, str):
            raise TypeError("flag value must be a string, found %r" %
                            (argument,))
        return argument

    def flag_type(self):
        return "string"


class BooleanParser(ArgumentParser):

    def parse(self, argument):
        if isinstance(argument, str):
            if argument.lower() in ("true", "t", "1"):
                return True
            if argument.lower() in ("false", "f", "0"):
                return False
            raise ValueError("Non-boolean argument to boolean flag", argument)
        if isinstance(argument, (bool, int, float)) and \
                bool(argument) == argument:
            return bool(argument)
        raise TypeError("Non-boolean argument to boolean flag", argument)

    def flag_type(self):
        return "bool"


class _NumberParser(ArgumentParser):

    def __init__(self, lower_bound=None, upper_bound=None):
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def parse(self, argument):
        value = self.convert(argument)
        if (self.lower_bound is not None and value < self.lower_bound) or \
                (self.upper_bound is not None and value > self.upper_bound):
            raise ValueError("%s is not in [%s, %s]" % (
                value, self.lower_bound, self.upper_bound))
        return value


class IntegerParser(_NumberParser):

    def convert(self, argument):
        if isinstance(argument, str):
            base = 10
            if len(argument) > 2 and argument[0] == "0":
                base = {"o": 8, "x": 16}.get(argument[1], 10)
            return int(argument, base)
        if isinstance(argument, bool) or int(argument) != argument:
            raise TypeError("Expect argument to be a string or int, found %s"
                            % type(argument))
        return int(argument)

    def flag_type(self):
        return "int"


class FloatParser(_NumberParser):

    def convert(self, argument):
        return float(argument)

    def flag_type(self):
        return "float"


class EnumParser(ArgumentParser):

    def __init__(self, enum_values, case_sensitive=True):
        if not enum_values:
            raise ValueError("enum_values cannot be empty, found %r" %
                             (enum_values,))
        self.enum_values = enum_values
        self.case_sensitive = case_sensitive

    def parse(self, argument):
        for value in self.enum_values:
            if value == argument or not self.case_sensitive and \
                    value.lower() == argument.lower():
                return value
        raise ValueError("value should be one of <%s>" %
                         "|".join(self.enum_values))


class EnumClassParser(ArgumentParser):

    def __init__(self, enum_class, case_sensitive=False):
        self.enum_class = enum_class
        self._case_sensitive = case_sensitive

    def parse(self, argument):
        if isinstance(argument, self.enum_class):
            return argument
        members = self.enum_class.__members__
        if argument not in members and not self._case_sensitive:
            lower = {name.lower(): name for name in members}
            argument = lower.get(str(argument).lower(), argument)
        if argument not in members:
            raise ValueError("value should be one of <%s>" %
                             "|".join(members))
        return self.enum_class[argument]


class ListParser(ArgumentParser):
    """Parts of a text, between commas or (with None) white space."""

    def __init__(self, separator, comma_compat=False):
        self._separator = separator
        self._comma_compat = comma_compat

    def parse(self, argument):
        if isinstance(argument, (list, tuple)):
            return list(argument)
        if not argument:
            return []
        if self._separator is None:
            if self._comma_compat:
                argument = argument.replace(",", " ")
            return argument.split()
        return [part.strip() for part in argument.split(self._separator)]


class Flag(object):
    """A flag: its name, its value and how to parse one."""

    def __init__(self, parser, name, default, help, short_name=None,
                 boolean=None, allow_override=False, serializer=None, **_):
        self.parser = parser
        self.name = name
        self.help = help or "(no help available)"
        self.short_name = short_name
        self.boolean = isinstance(parser, BooleanParser) if boolean is None \
            else boolean
        self.allow_override = allow_override
        self.module = "__main__"
        self.validators = []
        self.present = 0
        self.set_default(default)
        self.using_default_value = True
        self.value = self.default

    def set_default(self, value):
        self.default_unparsed = value
        self.default = None if value is None else self._parsed(value)
        if getattr(self, "using_default_value", True):
            self.value = self.default

    def unparse(self):
        self.value = self.default
        self.using_default_value = True
        self.present = 0

    def _parsed(self, text):
        try:
            return self.parser.parse(text)
        except (TypeError, ValueError) as e:
            raise IllegalFlagValueError("flag --%s=%s: %s" %
                                        (self.name, text, e)) from None

    def parse(self, text):
        self.value = self._parsed(text)
        self.using_default_value = False
        self.present += 1

    def serialize(self):
        """The words that give this flag its value."""
        if self.boolean:
            return ["--%s%s" % ("" if self.value else "no", self.name)]
        value = self.value
        if isinstance(value, list):
            value = ",".join(map(str, value))
        return ["--%s=%s" % (self.name, value)]


class MultiFlag(Flag):
    """A flag that may be given several times; its value is a list."""

    def _parsed(self, text):
        if not isinstance(text, (list, tuple)):
            text = [text]
        return [super(MultiFlag, self)._parsed(t) for t in text]

    def parse(self, text):
        values = self._parsed(text)
        self.value = self.value + values if self.present else values
        self.using_default_value = False
        self.present += 1

    def serialize(self):
        return ["--%s=%s" % (self.name, v) for v in self.value]


class AliasFlag(Flag):
    """Another name for a flag."""

    def __init__(self, name, original):
        self.__dict__["_original"] = original
        self.__dict__["name"] = name
        self.__dict__["short_name"] = None
        self.__dict__["module"] = "__main__"
        self.__dict__["help"] = "Alias for --%s." % original.name

    def __getattr__(self, attribute):
        return getattr(self._original, attribute)

    def __setattr__(self, attribute, value):
        if attribute == "module":
            self.__dict__[attribute] = value
        else:
            setattr(self._original, attribute, value)

    def parse(self, text):
        self._original.parse(text)
