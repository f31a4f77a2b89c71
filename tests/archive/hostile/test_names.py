"""Names and classes that an archive gives: keywords, names that Python keeps, classes that hold each other."""

import pytest

import rekindle
from rekindle.errors import CompileError, CorruptArchiveError, ParseError, UndefinedNameError, UnsupportedError
from tests.archive.hostile.containers import Member
from tests.archive.hostile.programs import attributes, loaded, object_of, program, refusal, text

MISFIT = "The pickle does not fit the program"


def message(archive, error):
    """The text of the error without the line of the program."""
    return refusal(archive, error).partition("\n")[0]


NO_BASE = "the class '__torch__.A' derives from what no class of an archive derives from"


@pytest.mark.parametrize(
    ("definition", "error", "problem"),
    [
        ("class A(NamedTuple):\n  def : int", ParseError, "Expected a name but found ':'."),
        ("class A(NamedTuple):\n  print : int\n  _x : int", CompileError, "a NamedTuple cannot have a field '_x'"),
        ('class A(NamedTuple):\n  __annotations__["if"] = int', CompileError, "a NamedTuple cannot have a field 'if'"),
        ("class A(Enum):\n  mro = 1", CompileError, "Python cannot have this enum: invalid enum member name(s) 'mro'"),
        ("class A(Enum):\n  _ignore_ = 1", CompileError, "Python cannot have this enum: 'int' object is not iterable"),
        ("class A(Enum):\n  B = 1\n  B = 2", ParseError, "this class has two things of the name 'B'"),
        ("class A:\n  x : int\n  x : int", ParseError, "this class has two things of the name 'x'"),
        ("class A(__torch__.A):\n  x : int", CompileError, NO_BASE),
        ("class A(Exception):\n  x : int", CompileError, NO_BASE),
        ("class async:\n  x : int", ParseError, "Expected a name but found 'async'."),
        (
            "class A:\n  x : __import__('os').system",
            UnsupportedError,
            "'__import__('os').system' is not a type that a program can use",
        ),
        ("class A:\n  x : int\nclass A:\n  y : int", ParseError, "'A' is defined twice"),
    ],
)
def test_classes_that_cannot_be(definition, error, problem):
    assert message(program("  a : Optional[__torch__.A]\n", before=f"{definition}\n", a=b"N"), error) == problem


@pytest.mark.parametrize("name", ["_modules", "_parameters", "_rekindle_type", "__class__", "__dict__", "__getattr__"])
def test_attributes_that_python_and_pytorch_keep_for_themselves(name):
    assert message(program(f"  {name} : int\n", **{name: b"K\1"}), ParseError) == (
        f"this class has an attribute '{name}', a name that is kept for other purposes"
    )


@pytest.mark.parametrize("name", ["forward", "training"])
def test_names_for_two_things(name):
    assert message(program(f"  {name} : int\n", **({} if name == "training" else {name: b"K\1"})), ParseError) == (
        f"this class has two things of the name '{name}'"
    )


def test_modules_of_the_program_may_be_called_as_they_like():
    """``code/__torch__/class.py`` cannot be spelled in a text; ``code/__torch__/os/path.py`` is not a module of
    Python."""
    where = [Member("a/code/__torch__/class.py", b"class B:\n  n : int\n")]
    broken = program("  a : __torch__.class.B\n", more=where, a=b"N")
    assert message(broken, ParseError) == "Expected a name but found 'class'."
    where = [Member("a/code/__torch__/os/path.py", b"class B:\n  n : int\n")]
    value = b"c__torch__.os.path\nB\n)\x81" + attributes(n=b"K\3") + b"b"
    module = loaded(program("  a : __torch__.os.path.B\n", more=where, a=value))
    assert (module.a.n, type(module.a).__module__) == (3, "__torch__.os.path")


def test_texts_that_need_each_other():
    x = b"import __torch__\nclass A:\n  m : Optional[__torch__.M]\n  b : Optional[__torch__.y.B]\n"
    y = b"import __torch__.x\nclass B:\n  a : __torch__.x.A\n"
    more = [Member("a/code/__torch__/x.py", x), Member("a/code/__torch__/y.py", y)]
    value = b"c__torch__.x\nA\n)\x81" + attributes(m=b"N", b=b"N") + b"b"
    module = loaded(program("  a : __torch__.x.A\n", before="import __torch__.x\n", more=more, a=value))
    assert module.a.b is None


def test_types_within_themselves():
    own = "class A(NamedTuple):\n  a : Optional[__torch__.A]\n"
    unknown = "the type '__torch__.A' is not known"
    assert message(program("  a : __torch__.A\n", before=own, a=b"N\x85"), UndefinedNameError) == unknown
    both = "class A(NamedTuple):\n  b : Optional[__torch__.B]\nclass B(NamedTuple):\n  a : Optional[__torch__.A]\n"
    assert message(program("  a : __torch__.A\n", before=both, a=b"N\x85"), UndefinedNameError) == unknown
    interface = "class I(Interface):\n  def f(self, i: __torch__.I) -> __torch__.I:\n    pass\n"
    assert loaded(program("  a : Optional[__torch__.I]\n", before=interface, a=b"N")).a is None
    script = "class A:\n  a : Optional[__torch__.A]\n"
    value = object_of("A", attributes(a=object_of("A", attributes(a=b"N"))))
    assert loaded(program("  a : __torch__.A\n", before=script, a=value)).a.a.a is None


def test_values_within_themselves():
    holds_itself = f"{MISFIT}: a value holds itself. (in 'data.pkl')"
    script = "class A:\n  a : Optional[__torch__.A]\n"
    loop = b"c__torch__\nA\n)\x81q\1" + attributes(a=b"h\1") + b"b"
    assert refusal(program("  a : __torch__.A\n", before=script, a=loop), CorruptArchiveError) == holds_itself
    assert refusal(program("  a : List[Any]\n", a=b"]q\1h\1a"), CorruptArchiveError) == holds_itself
    assert refusal(program("  a : Any\n", a=b"}q\1" + text("x") + b"h\1s"), CorruptArchiveError) == holds_itself
    module = b"\x80\2c__torch__\nM\n)\x81q\1" + attributes(training=b"\x88", m=b"h\1") + b"b."
    assert refusal(program("  m : __torch__.M\n", data=module), CorruptArchiveError) == holds_itself


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b"N", "None"),
        (text("1"), "str"),
        (b"G" + bytes(8), "float"),
        (b"\x88", "bool"),
        (b"]", "a list"),
        (object_of("M", attributes(training=b"\x88", n=b"K\1")), "an object of '__torch__.M'"),
    ],
)
def test_values_of_other_types(value, found):
    assert refusal(program("  n : int\n", n=value), CorruptArchiveError) == (
        f"{MISFIT}: a value of type int is needed, and there is {found}. (in 'data.pkl')"
    )


def test_attributes_that_are_missing_or_too_many():
    assert refusal(program("  n : int\n"), CorruptArchiveError) == (
        f"{MISFIT}: an object of '__torch__.M' lacks its attribute 'n'. (in 'data.pkl')"
    )
    assert refusal(program(n=b"K\1"), CorruptArchiveError) == (
        f"{MISFIT}: an object of '__torch__.M' has an attribute 'n', which its class lacks. (in 'data.pkl')"
    )
    unknown = program("  n : Any\n", n=object_of("X", attributes(a=b"N")))
    assert refusal(unknown, CorruptArchiveError) == (
        f"{MISFIT}: there is an object of '__torch__.X', which the code of the archive does not define. (in 'data.pkl')"
    )


def test_text_is_parsed_and_never_evaluated():
    """What Python would do with a text does not matter: it is read by a parser that knows classes and functions."""
    for line in ("import os\nos.system('true')\n", "__import__('os')\n", "def f():\n  x = yield\n"):
        with pytest.raises(CompileError):
            rekindle.load(program(before=line))
