"""Alias rules, one by one: values that may share memory, and values that must not."""

from __future__ import annotations

import pytest
import torch

from rekindle.ir.graph import Graph
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.text.schema_parser import parse_schema
from rekindle.ir.types import NONE, TENSOR, ClassType, InterfaceType, ListType, TupleType
from tests.analysis.aliases import Named

# ------------------------------------------------------------------------------------------------------------ operators

OPERATORS = """
graph(%x : Tensor, %y : Tensor, %n : int, %d : float, %off : bool):
  %zero : int = prim::Constant[value=0]()
  %sizes : int[] = prim::ListConstruct(%n)
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %view : Tensor = aten::select(%a, %zero, %zero)
  %viewed : Tensor = aten::slice(%view, %zero, %zero, %n, %n)
  %written : Tensor = aten::add_(%b, %y, %n)
  %c : Tensor = aten::neg(%x)
  %may_copy : Tensor = aten::reshape(%c, %sizes)
  %e : Tensor = aten::neg(%x)
  %out : Tensor = aten::mul(%x, %y, %e)
  %f : Tensor = aten::neg(%x)
  %typed : Tensor = aten::type_as(%f, %x)
  %g : Tensor = aten::neg(%x)
  %dropped : Tensor = aten::dropout(%g, %d, %off)
  %product : Tensor = aten::matmul(%g, %f)
  %h : Tensor = aten::neg(%x)
  %pieces : Tensor[] = aten::split(%h, %n, %zero)
  %piece : Tensor = aten::__getitem__(%pieces, %zero)
  %whole : Tensor = aten::cat(%pieces, %zero)
  %i : Tensor = aten::neg(%x)
  %ones : Tensor = aten::_unsafe_view(%i, %sizes)
  return (%x)
"""


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("x", "y", "same"),  # a caller may pass one tensor twice
        ("x", "a", "apart"),
        ("a", "b", "apart"),
        ("a", "view", "same"),
        ("a", "viewed", "same"),
        ("b", "viewed", "apart"),
        ("b", "written", "same"),
        ("y", "written", "apart"),
        ("c", "may_copy", "same"),
        ("c", "sizes", "apart"),
        ("e", "out", "same"),
        ("x", "out", "apart"),
        ("typed", "f", "same"),  # a composite: its schema does not say
        ("typed", "x", "same"),
        ("typed", "a", "apart"),
        ("dropped", "g", "same"),
        ("product", "g", "apart"),  # a composite that is known to make something new
        ("pieces", "h", "in"),
        ("piece", "h", "same"),
        ("piece", "pieces", "in"),
        ("whole", "h", "apart"),
        ("ones", "i", "same"),  # its schema denies it
        ("n", "zero", "apart"),
        ("x", "n", "apart"),
    ],
)
def test_operators(first: str, second: str, relation: str) -> None:
    assert Named(OPERATORS).relation(first, second) == relation


def test_a_tensor_that_takes_over_the_storage_of_another() -> None:
    named = Named("""
graph(%x : Tensor):
  %a : Tensor = aten::neg(%x)
  %same : Tensor = prim::unchecked_cast(%a)
  %view : Tensor = aten::detach(%a)
  %b : Tensor = aten::neg(%x)
  %c : Tensor = aten::neg(%x)
  %joined : Tensor = aten::set_(%same, %b)
  return (%joined)
""")
    assert named.relation("a", "b") == "same"
    assert named.relation("view", "b") == "same"
    assert named.relation("a", "c") == "apart"
    assert named.relation("x", "b") == "apart"


def test_whatever_may_be_the_tensor_that_takes_over_a_storage() -> None:
    named = Named("""
graph(%x : Tensor, %c : bool):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %d : Tensor = aten::neg(%x)
  %e : Tensor = aten::neg(%x)
  %either : Tensor, %source : Tensor = prim::If(%c)
    block0():
      -> (%a, %d)
    block1():
      -> (%b, %e)
  %joined : Tensor = aten::set_(%either, %source)
  return (%joined)
""")
    assert named.relation("a", "d") == "same"
    assert named.relation("b", "e") == "same"
    assert named.relation("a", "x") == "apart"


def test_composites_that_return_lists() -> None:
    named = Named("""
graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %flat : Tensor = aten::neg(%x)
  %like : Tensor = aten::neg(%x)
  %list : Tensor[] = prim::ListConstruct(%like)
  %parts : Tensor[] = aten::unflatten_dense_tensors(%flat, %list)
  %part : Tensor = aten::__getitem__(%parts, %zero)
  return (%part)
""")
    assert named.relation("part", "flat") == "same"
    assert named.relation("parts", "flat") == "in"
    assert named.relation("part", "x") == "apart"


def test_what_schemas_call_a_wildcard() -> None:
    REGISTRY.register(Operator(parse_schema("test::keep(Tensor(a -> *) kept) -> ()"), lambda kept: None))
    named = Named("""
graph(%x : Tensor):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
   = test::keep(%b)
  %grad : Tensor = prim::grad(%a)
  return (%grad)
""")
    assert named.relation("grad", "x") == "same"
    assert named.relation("grad", "a") == "apart"
    assert named.relation("grad", "b") == "same"
    assert named.db.escapes(named.value("b"))


# ----------------------------------------------------------------------------------------------------------- containers

CONTAINERS = """
graph(%x : Tensor, %n : int, %k : str):
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %c : Tensor = aten::neg(%x)
  %d : Tensor = aten::neg(%x)
  %e : Tensor = aten::neg(%x)
  %list : Tensor[] = prim::ListConstruct(%a)
  %got : Tensor = aten::__getitem__(%list, %zero)
  %appended : Tensor[] = aten::append(%list, %b)
  %copy : Tensor[] = aten::list(%list)
  %other : Tensor[] = prim::ListConstruct(%c)
   = aten::extend(%other, %copy)
  %popped : Tensor = aten::pop(%other, %zero)
  %apart : Tensor[] = prim::ListConstruct(%d)
  %longer : Tensor[] = aten::add(%apart, %apart)
  %same : Tensor[] = aten::add_(%apart, %longer)
  %numbers : int[] = prim::ListConstruct(%n)
  %more : int[] = aten::add(%numbers, %numbers)
  %grown : int[] = aten::add_(%numbers, %more)
  %dict : Dict(str, Tensor) = prim::DictConstruct(%k, %e)
  %default : Tensor = aten::setdefault(%dict, %k, %d)
  %found : Tensor? = aten::get(%dict, %k)
  %values : Tensor[] = aten::values(%dict)
  %items : (str, Tensor)[] = aten::items(%dict)
  %item : (str, Tensor) = aten::__getitem__(%items, %zero)
  %key : str, %value : Tensor = prim::TupleUnpack(%item)
  %first : Tensor, %second : Tensor = prim::ListUnpack(%list)
  %nested : Tensor[][] = prim::ListConstruct(%list)
  %inner : Tensor[] = aten::__getitem__(%nested, %zero)
  %deep : Tensor[] = aten::append(%inner, %e)
  return (%got)
"""


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("list", "a", "in"),
        ("list", "c", "apart"),
        ("got", "a", "same"),
        ("got", "b", "same"),  # the order of nodes does not count
        ("got", "c", "apart"),
        ("appended", "list", "same"),
        ("copy", "list", "in"),  # a new list of the same tensors
        ("popped", "a", "same"),
        ("popped", "c", "same"),
        ("a", "c", "apart"),
        ("list", "other", "in"),
        ("list", "apart", "apart"),
        ("longer", "d", "in"),
        ("longer", "apart", "in"),
        ("same", "apart", "same"),  # though the schema of add_ does not say that it returns its argument
        ("same", "longer", "in"),  # its elements are those of its second argument too
        ("numbers", "more", "apart"),
        ("grown", "numbers", "same"),
        ("grown", "more", "apart"),
        ("numbers", "list", "apart"),
        ("default", "d", "same"),
        ("default", "e", "same"),
        ("found", "d", "same"),
        ("found", "a", "apart"),
        ("values", "dict", "in"),
        ("values", "e", "in"),
        ("value", "e", "same"),
        ("value", "c", "apart"),
        ("first", "second", "same"),
        ("first", "c", "apart"),
        ("nested", "list", "in"),
        ("inner", "list", "same"),
        ("got", "e", "same"),  # what is put into %inner is put into %list
    ],
)
def test_containers(first: str, second: str, relation: str) -> None:
    assert Named(CONTAINERS).relation(first, second) == relation


TUPLES = """
graph(%x : Tensor, %pair : (Tensor, int), %c : bool):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %list : Tensor[] = prim::ListConstruct(%b)
  %t : (Tensor, Tensor[], int) = prim::TupleConstruct(%a, %list, %one)
  %0 : Tensor, %1 : Tensor[], %2 : int = prim::TupleUnpack(%t)
  %3 : Tensor[] = prim::TupleIndex(%t, %one)
  %4 : (Tensor[], int) = prim::TupleSlice[beg=1, end=3](%t)
  %of_slice : Tensor[], %6 : int = prim::TupleUnpack(%4)
  %7 : Tensor, %8 : int = prim::TupleUnpack(%pair)
  %joined : (Tensor, Tensor[], int) = prim::If(%c)
    block0():
      -> (%t)
    block1():
      %fresh : Tensor = aten::neg(%x)
      %9 : (Tensor, Tensor[], int) = prim::TupleConstruct(%fresh, %list, %one)
      -> (%9)
  %10 : Tensor, %11 : Tensor[], %12 : int = prim::TupleUnpack(%joined)
  return (%t)
"""


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("t", "a", "in"),
        ("t", "b", "in"),
        ("t", "x", "apart"),
        ("a", "b", "apart"),
        ("t", "joined", "in"),  # a tuple has no memory of its own
        ("7", "x", "same"),
        ("7", "a", "apart"),
        ("0", "a", "same"),
        ("0", "b", "apart"),
        ("1", "list", "same"),
        ("3", "list", "same"),
        ("of_slice", "list", "same"),
        ("10", "a", "same"),
        ("10", "fresh", "same"),
        ("10", "b", "apart"),
        ("11", "list", "same"),
    ],
)
def test_tuples(first: str, second: str, relation: str) -> None:
    assert Named(TUPLES).relation(first, second) == relation


def test_more_of_tuples_and_dicts() -> None:
    named = Named("""
graph(%x : Tensor, %pair : (Tensor, int)):
  %zero : int = prim::Constant[value=0]()
  %last : int = prim::Constant[value=-1]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %key : Tensor = aten::neg(%x)
  %t : (Tensor, Tensor) = prim::TupleConstruct(%a, %b)
  %of_end : Tensor = prim::TupleIndex(%t, %last)
  %dict : Dict(Tensor, Tensor) = prim::DictConstruct(%key, %a)
  %keys : Tensor[] = aten::keys(%dict)
  %got_key : Tensor = aten::__getitem__(%keys, %zero)
  %first : Tensor, %0 : int = prim::TupleUnpack(%pair)
  %1 : int = mystery::op(%b)
  return (%x)
""")
    assert named.relation("of_end", "b") == "same"
    assert named.relation("of_end", "a") == "apart"
    assert named.relation("got_key", "key") == "same"
    assert named.relation("got_key", "a") == "apart"
    assert named.relation("first", "x") == "same"
    assert named.relation("first", "b") == "apart"  # the tuple was made before the call


def test_lists_that_turn_out_to_be_one() -> None:
    named = Named("""
graph(%x : Tensor, %c : bool):
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %new : Tensor = aten::neg(%x)
  %l : Tensor[] = prim::ListConstruct(%a)
  %m : Tensor[] = prim::ListConstruct(%b)
  %of_l : Tensor = aten::__getitem__(%l, %zero)
  %of_m : Tensor = aten::__getitem__(%m, %zero)
  %either : Tensor[] = prim::If(%c)
    block0():
      -> (%l)
    block1():
      -> (%m)
  %0 : Tensor[] = aten::append(%either, %new)
  return (%x)
""")
    assert named.relation("of_l", "new") == "same"
    assert named.relation("of_m", "new") == "same"


# --------------------------------------------------------------------------------------------------------- control flow

CONTROL_FLOW = """
graph(%c : bool, %n : int, %x : Tensor):
  %true : bool = prim::Constant[value=1]()
  %a : int[] = prim::ListConstruct()
  %b : int[] = prim::ListConstruct()
  %d : int[] = prim::ListConstruct()
  %e : int[] = prim::If(%c)
    block0():
      -> (%a)
    block1():
      -> (%b)
  %f : int[] = prim::Loop(%n, %true, %d)
    block0(%i : int, %g : int[]):
      %h : int[] = prim::ListConstruct(%i)
      -> (%true, %h)
  %p : Tensor = aten::neg(%x)
  %q : Tensor = aten::neg(%x)
  %r : Tensor, %s : Tensor = prim::Loop(%n, %true, %p, %q)
    block0(%j : int, %k : Tensor, %l : Tensor):
      -> (%true, %l, %k)
  %t : Tensor = prim::Loop(%n, %true, %x)
    block0(%u : int, %v : Tensor):
      %w : Tensor = aten::neg(%v)
      -> (%true, %w)
  return (%f)
"""


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("e", "a", "same"),
        ("e", "b", "same"),
        ("a", "b", "apart"),
        ("e", "d", "apart"),
        ("f", "d", "same"),
        ("f", "h", "same"),
        ("g", "d", "same"),
        ("g", "h", "same"),  # a result of one iteration is an input of the next
        ("d", "h", "apart"),
        ("r", "q", "same"),
        ("s", "p", "same"),
        ("k", "q", "same"),
        ("p", "q", "apart"),
        ("t", "x", "same"),
        ("t", "w", "same"),
        ("w", "x", "apart"),
    ],
)
def test_control_flow(first: str, second: str, relation: str) -> None:
    assert Named(CONTROL_FLOW).relation(first, second) == relation


# ------------------------------------------------------------------------------------------------------ what is outside

INPUTS = """
graph(%x : Tensor, %f : Float(2, 3), %o : Tensor?, %any : Any, %l : Tensor[], %m : Tensor?[], %i : int[],
      %s : Scalar[], %u : Union(Tensor, int[]), %t : (Tensor, int[]), %q : Future(Tensor), %w : Any[]):
  %fresh : Tensor = aten::neg(%x)
  %zero : int = prim::Constant[value=0]()
  %of_list : Tensor = aten::__getitem__(%l, %zero)
  %result : Tensor = aten::wait(%q)
  return (%x)
"""


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("x", "f", "same"),
        ("x", "o", "same"),
        ("x", "any", "same"),
        ("x", "u", "same"),
        ("x", "l", "in"),
        ("x", "t", "in"),
        ("x", "i", "apart"),
        ("l", "i", "apart"),
        ("l", "m", "same"),  # a list without None can be passed for both
        ("l", "any", "same"),
        ("l", "w", "same"),
        ("i", "w", "same"),
        ("x", "w", "in"),
        ("i", "s", "same"),
        ("i", "u", "same"),
        ("i", "t", "in"),
        ("l", "t", "in"),
        ("x", "of_list", "same"),
        ("x", "q", "in"),
        ("x", "result", "same"),
        ("q", "result", "in"),
        *((name, "fresh", "apart") for name in ("x", "any", "l", "u", "t", "of_list", "q", "result")),
    ],
)
def test_inputs(first: str, second: str, relation: str) -> None:
    assert Named(INPUTS).relation(first, second) == relation


def test_classes_and_interfaces() -> None:
    one, other, face = ClassType("__torch__.One"), ClassType("__torch__.Other"), InterfaceType("__torch__.Face")
    graph = Graph()
    for name, type in (("one", one), ("other", other), ("face", face), ("again", one)):
        graph.add_input(name, type)
    named = Named(graph)
    assert named.relation("one", "again") == "same"
    assert named.relation("one", "face") == "same"
    assert named.db.may_alias(named.value("one"), named.value("other")) is False
    assert named.relation("one", "other") == "in"  # both may hold what the other holds


UNKNOWN = """
graph(%x : Tensor, %l : Tensor[]):
  %zero : int = prim::Constant[value=0]()
  %fresh : Tensor = aten::neg(%x)
  %kept : Tensor = aten::neg(%x)
  %list : Tensor[] = prim::ListConstruct(%fresh)
  %before : Tensor = aten::__getitem__(%list, %zero)
  %result : Tensor = mystery::op(%list)
  %whatever : Any = mystery::other(%zero)
  %later : Tensor = aten::__getitem__(%list, %zero)
  %of_input : Tensor = aten::__getitem__(%l, %zero)
  return (%result)
"""


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("result", "x", "same"),
        ("result", "fresh", "same"),
        ("later", "x", "same"),  # it may have put something else into the list
        ("before", "x", "same"),
        ("whatever", "fresh", "same"),
        ("whatever", "list", "same"),
        ("whatever", "kept", "apart"),
        ("of_input", "fresh", "same"),  # and may have put the tensor there
        ("fresh", "x", "apart"),  # %x is from before the call
        ("kept", "result", "apart"),
    ],
)
def test_an_unknown_operator_may_do_anything(first: str, second: str, relation: str) -> None:
    assert Named(UNKNOWN).relation(first, second) == relation


def test_what_an_unknown_operator_writes_to() -> None:
    named = Named(UNKNOWN)
    assert named.written() == ["before", "fresh", "l", "later", "list", "of_input", "result", "whatever", "x"]
    escaped = [name for name in ("x", "fresh", "kept", "list") if named.db.escapes(named.value(name))]
    assert escaped == ["x", "fresh", "list"]  # the list may hold %x by now
    assert [name for name in ("x", "fresh", "kept") if named.db.outlives_call(named.value(name))] == ["x", "fresh"]
    assert named.db.has_untracked_effects(named.node("result"))
    assert not named.db.has_untracked_effects(named.node("fresh"))


def test_what_is_put_into_a_list_of_the_caller() -> None:
    named = Named("""
graph(%x : Tensor, %l : Tensor[], %m : Tensor[]):
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %0 : Tensor[] = aten::append(%l, %a)
  %got : Tensor = aten::__getitem__(%m, %zero)
  return (%b)
""")
    assert named.relation("got", "a") == "same"  # %l and %m may be one list
    assert named.relation("got", "b") == "apart"
    assert named.relation("a", "x") == "apart"
    assert named.db.escapes(named.value("a"))
    assert not named.db.escapes(named.value("b"))


# ------------------------------------------------------------------------------------------------------------- objects


def _object_graph() -> Graph:
    node = ClassType("__torch__.Node")
    node.add_attribute("left", TENSOR)
    node.add_attribute("right", TENSOR)
    graph = Graph()
    x = graph.add_input("x")
    theirs = graph.add_input("theirs", node)
    made = graph.insert_node(graph.create("prim::CreateObject", types=[node])).output.set_name("made")
    a, b, c = (graph.insert("aten::neg", [x]).set_name(name) for name in "abc")

    def put(owner: object, name: str, value: object) -> None:
        graph.insert_node(graph.create("prim::SetAttr", [owner, value], types=[], attributes={"name": name}))

    def get(owner: object, name: str, result: str) -> None:
        node = graph.create("prim::GetAttr", [owner], types=[TENSOR], attributes={"name": name})
        graph.insert_node(node).output.set_name(result)

    put(made, "left", a)
    put(made, "right", b)
    put(theirs, "left", c)
    get(made, "left", "left")
    get(made, "right", "right")
    get(theirs, "right", "of_theirs")
    return graph


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("left", "a", "same"),
        ("left", "b", "apart"),  # attributes are kept apart
        ("right", "b", "same"),
        ("left", "x", "apart"),
        ("made", "a", "in"),
        ("made", "theirs", "apart"),
        ("of_theirs", "x", "same"),
        ("of_theirs", "c", "same"),  # it is unknown to which objects its instances refer
        ("of_theirs", "a", "apart"),
    ],
)
def test_objects(first: str, second: str, relation: str) -> None:
    assert Named(_object_graph()).relation(first, second) == relation


def _module_graph() -> Graph:
    module = ClassType("__torch__.Net", is_module=True)
    module.add_attribute("weight", TENSOR, "parameter")
    module.add_attribute("bias", TENSOR, "parameter")
    module.add_attribute("pair", TupleType((TENSOR, ListType(TENSOR))))
    graph = Graph()
    self = graph.add_input("self", module)
    graph.add_input("x")
    for name, attribute, type in (
        ("weight", "weight", TENSOR),
        ("again", "weight", TENSOR),
        ("bias", "bias", TENSOR),
        ("pair", "pair", TupleType((TENSOR, ListType(TENSOR)))),
    ):
        node = graph.create("prim::GetAttr", [self], types=[type], attributes={"name": attribute})
        graph.insert_node(node).output.set_name(name)
    return graph


def test_attributes_of_modules() -> None:
    named = Named(_module_graph())
    assert named.relation("weight", "x") == "same"
    assert named.relation("weight", "bias") == "same"


def test_attributes_of_frozen_modules() -> None:
    named = Named(_module_graph(), is_frozen=True)
    assert named.relation("weight", "x") == "apart"
    assert named.relation("weight", "bias") == "apart"
    assert named.relation("weight", "again") == "same"
    assert named.relation("pair", "x") == "apart"
    assert named.db.outlives_call(named.value("weight"))
    assert not named.db.escapes(named.value("weight"))


# ------------------------------------------------------------------------------------------------------------ constants


def _constants() -> Graph:
    graph = Graph()
    graph.add_input("x")
    base = torch.zeros(4)
    graph.insert_constant(base).set_name("base")
    graph.insert_constant(base[1:]).set_name("view")
    graph.insert_constant(torch.zeros(4)).set_name("other")
    graph.insert_constant([base, torch.ones(1)]).set_name("list")
    graph.insert_constant(None, NONE).set_name("none")
    return graph


def test_constants() -> None:
    named = Named(_constants())
    assert named.relation("base", "view") == "same"
    assert named.relation("base", "other") == "apart"
    assert named.relation("base", "list") == "in"
    assert named.relation("other", "list") == "apart"
    assert named.relation("base", "x") == "same"  # the code that made the constant may pass it
    assert named.relation("none", "x") == "apart"
    assert all(named.db.outlives_call(named.value(name)) for name in ("base", "x", "list"))
    assert not named.db.escapes(named.value("base"))


def test_constants_of_a_frozen_graph() -> None:
    named = Named(_constants(), is_frozen=True)
    assert named.relation("base", "x") == "apart"
    assert named.relation("base", "view") == "same"
    assert named.db.outlives_call(named.value("base"))


# ------------------------------------------------------------------------------------------------- futures, subgraphs

FORK = """
graph(%x : Tensor):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %future : Future(Tensor) = prim::fork_0(%a, %x)
  %c : Tensor = aten::neg(%x)
  %result : Tensor = aten::wait(%future)
  return (%result)
with prim::fork_0 = graph(%p : Tensor, %q : Tensor):
  %one : int = prim::Constant[value=1]()
  %v : Tensor = aten::add_(%p, %q, %one)
  return (%v)
"""


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("result", "a", "same"),
        ("result", "b", "apart"),
        ("result", "x", "apart"),
        ("future", "a", "in"),
        ("future", "c", "apart"),
    ],
)
def test_what_a_fork_returns(first: str, second: str, relation: str) -> None:
    assert Named(FORK).relation(first, second) == relation


def test_what_a_fork_writes_to() -> None:
    named = Named(FORK)
    assert named.writers_of("a") == ["prim::fork", "aten::wait"]
    assert named.writers_of("b") == []
    assert named.writers_of("x") == []
    assert not named.db.escapes(named.value("a"))


def test_a_subgraph_that_runs_in_its_place() -> None:
    named = Named("""
graph(%x : Tensor):
  %a : Tensor = aten::neg(%x)
  %b : Tensor, %c : Tensor = prim::DifferentiableGraph_0(%a, %x)
  return (%b)
with prim::DifferentiableGraph_0 = graph(%p : Tensor, %q : Tensor):
  %v : Tensor = aten::relu_(%p)
  %w : Tensor = aten::neg(%q)
  return (%v, %w)
""")
    assert named.relation("b", "a") == "same"
    assert named.relation("c", "a") == "apart"
    assert named.relation("c", "x") == "apart"
    assert named.writers_of("a") == ["prim::DifferentiableGraph"]
    assert named.writers_of("x") == []


# --------------------------------------------------------------------------------------------------------------- writes

WRITES = """
graph(%x : Tensor, %y : Tensor, %n : int, %mean : Tensor, %train : bool, %eps : float):
  %one : int = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=0]()
  %a : Tensor = aten::neg(%x)
  %view : Tensor = aten::t(%a)
  %b : Tensor = aten::add_(%view, %y, %one)
  %c : Tensor = aten::neg(%x)
  %list : Tensor[] = prim::ListConstruct(%c)
  %d : Tensor = aten::neg(%x)
  %more : Tensor[] = aten::append(%list, %d)
  %var : Tensor = aten::neg(%mean)
  %m : Tensor = aten::neg(%mean)
  %normal : Tensor = aten::batch_norm(%c, %c, %c, %m, %var, %train, %eps, %eps, %no)
  %m2 : Tensor = aten::neg(%mean)
  %eval : Tensor = aten::batch_norm(%c, %c, %c, %m2, %m2, %no, %eps, %eps, %no)
  return (%b)
"""


def test_writes() -> None:
    named = Named(WRITES)
    assert named.written() == ["a", "b", "list", "m", "more", "var", "view"]
    assert named.writers_of("a") == ["aten::add_"]
    assert named.writers_of("list") == ["aten::append"]
    assert named.writers_of("d") == []  # it is put into the list, not written to
    assert named.writers_of("m") == ["aten::batch_norm"]  # though its schema does not say so
    assert named.writers_of("m2") == []
    assert not named.db.outlives_call(named.value("a"))
    assert named.db.has_writers(named.node("b"))
    assert named.db.has_writers(named.node("view"))
    assert not named.db.has_writers(named.node("eval"))


def test_the_writes_of_a_node_are_those_in_its_blocks_too() -> None:
    named = Named("""
graph(%c : bool, %x : Tensor, %y : Tensor):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
   = prim::If(%c)
    block0():
      %0 : Tensor = aten::relu_(%a)
      -> ()
    block1():
      %1 : Tensor = aten::neg(%b)
      -> ()
  return (%a)
""")
    (node,) = named.graph.find_nodes("prim::If")
    a, b, x = (named.value(name) for name in "abx")
    assert named.db.writes_to(node) == named.db.memory(a)
    assert named.db.reads_from(node) == named.db.memory(a) | named.db.memory(b)
    assert named.db.writes_to_alias(node, [b, a])
    assert not named.db.writes_to_alias(node, [b, x])


# -------------------------------------------------------------------------------------------------- keeping up to date


def test_changes_to_the_graph() -> None:
    named = Named("""
graph(%x : Tensor):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::relu_(%a)
  return (%b)
""")
    db, graph = named.db, named.graph
    a, b, x = (named.value(name) for name in "abx")
    assert db.has_writers(a)
    copy = graph.insert_node(graph.create("aten::neg", [x])).output
    db.create_value(copy)
    assert not db.may_alias(copy, a)
    same = graph.insert_node(graph.create("prim::unchecked_cast", [a])).output
    db.copy_value(a, same)
    assert db.may_alias(same, b)
    new = graph.insert_node(graph.create("aten::relu", [a])).output
    db.create_value(new)
    db.remove_node(b.node)
    b.replace_all_uses_with(new)
    b.node.destroy()
    assert not db.has_writers(a)
    write = graph.insert_node(graph.create("aten::sigmoid_", [copy]))
    db.add_node(write)
    assert db.may_alias(write.output, copy)
    assert db.has_writers(copy)
    assert not db.has_writers(a)
    other = graph.insert_node(graph.create("aten::neg", [x])).output
    db.replace_with_new_value(copy, other)
    assert db.may_alias(other, write.output)


def test_what_was_asked_before_a_change_is_asked_anew() -> None:
    named = Named("""
graph(%x : Tensor):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %view : Tensor = aten::detach(%a)
  %list : Tensor[] = prim::ListConstruct()
  return (%view)
""")
    a, b, view, list_ = (named.value(name) for name in ("a", "b", "view", "list"))
    assert not named.db.may_alias(view, b)
    assert not named.db.may_contain_alias(list_, b)
    assert not named.db.has_writers(b)
    graph = named.graph
    named.db.add_node(graph.insert_node(graph.create("aten::append", [list_, b], types=[list_.type])))
    assert named.db.may_contain_alias(list_, b)
    named.db.add_node(graph.insert_node(graph.create("aten::set_", [a, b])))
    assert named.db.may_alias(view, b)
    named.db.add_node(graph.insert_node(graph.create("aten::relu_", [b])))
    assert named.db.has_writers(view)


def test_sets_of_values() -> None:
    named = Named(OPERATORS)
    a, b, view, x = (named.value(name) for name in ("a", "b", "view", "x"))
    assert named.db.may_alias([a, b], [view])
    assert not named.db.may_alias([b, x], view)
    assert named.db.may_contain_alias([b, named.value("pieces")], named.value("h"))
    assert not named.db.may_contain_alias([b, named.value("pieces")], a)
