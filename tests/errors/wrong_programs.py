"""Wrong programs: each makes one mistake that people make. ``f`` is compiled, or an instance of ``M``.

The first block is compiled as live Python, the second as program text, the third compiles and is called with wrong
arguments or fails while it runs.
"""

from __future__ import annotations

# Name -> text of a module. What every such module needs is put before it, on one line, so that the numbers of lines
# are those below.
LIVE: dict[str, str] = {
    # ----------------------------------------------------------------------------------------------------------- names
    "undefined_variable": """
def f(x):
    return x + y
""",
    "used_before_assignment": """
def f(x):
    z = y + 1
    y = x
    return z
""",
    "misspelled_operator": """
def f(x):
    return torch.sigmod(x)
""",
    "misspelled_method": """
def f(x):
    return x.sigmod()
""",
    "misspelled_module_attribute": """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x * self.wieght
""",
    "method_that_does_not_exist": """
class M(nn.Module):
    def forward(self, x):
        return self.helper(x)
""",
    "attribute_of_an_int": """
def f(n: int):
    return n.shape
""",
    # ----------------------------------------------------------------------------------------------------------- types
    "branches_disagree": """
def f(x, flag: bool):
    if flag:
        y = 1
    else:
        y = "one"
    return y * x
""",
    "branch_changes_a_type": """
def f(n: int, flag: bool):
    a = 1
    if flag:
        a = "one"
    return a
""",
    "comparison_of_str_and_int": """
def f(s: str):
    return s < 3
""",
    "loop_changes_a_type": """
def f(n: int):
    total = 0
    for i in range(n):
        total = [total]
    return total
""",
    "return_differs_from_annotation": """
def f(n: int) -> str:
    return n + 1
""",
    "return_missing_on_a_path": """
def f(n: int) -> int:
    if n > 0:
        return n
""",
    "annotation_differs_from_value": """
def f(n: int):
    a: str = n
    return a
""",
    "int_plus_str": """
def f(n: int, s: str):
    return n + s
""",
    "tensor_plus_none": """
def f(x):
    return x + None
""",
    "append_of_wrong_type": """
def f(n: int):
    a = [1, 2]
    a.append("three")
    return a
""",
    "dict_value_of_wrong_type": """
def f(n: int):
    d = {"a": 1}
    d["b"] = "two"
    return d
""",
    "optional_without_refinement": """
def f(xs: List[int], n: Optional[int]):
    xs.append(n)
    return xs
""",
    "optional_refined_in_the_wrong_branch": """
def f(n: Optional[int]):
    if n is None:
        return n + 1
    return 0
""",
    "ternary_of_two_types": """
def f(flag: bool):
    return 1 if flag else "one"
""",
    "unannotated_argument_is_a_tensor": """
def f(n):
    for i in range(n):
        pass
    return n
""",
    "loop_over_an_int": """
def f(n: int):
    for i in n:
        pass
    return n
""",
    "unpack_too_many": """
def f(t: Tuple[int, int]):
    a, b, c = t
    return a
""",
    "unpack_too_few": """
def f(t: Tuple[int, int, int]):
    a, b = t
    return a
""",
    "unpack_an_int": """
def f(n: int):
    a, b = n
    return a
""",
    "tuple_index_out_of_range": """
def f(t: Tuple[int, int]):
    return t[2]
""",
    "tuple_index_not_constant": """
def f(t: Tuple[int, str], i: int):
    return t[i]
""",
    "index_with_a_string": """
def f(v: List[int]):
    return v["a"]
""",
    "subscript_of_an_int": """
def f(n: int):
    return n[0]
""",
    "tuple_item_assignment": """
def f(t: Tuple[int, int]):
    t[0] = 1
    return t
""",
    "call_of_an_int": """
def f(n: int):
    return n(1)
""",
    "star_argument_of_tensor": """
def f(x):
    return torch.cat(*x)
""",
    # ----------------------------------------------------------------------------------------------------------- calls
    "operator_argument_of_wrong_type": """
def f(x):
    return torch.relu("x")
""",
    "operator_with_too_many_arguments": """
def f(x):
    return torch.relu(x, x, x)
""",
    "operator_with_unknown_keyword": """
def f(x):
    return torch.sum(x, dims=1)
""",
    "operator_without_an_argument": """
def f(x):
    return torch.mm(x)
""",
    "float_where_int_is_needed": """
def f(x):
    return x.sum(0.5)
""",
    "list_method_with_wrong_argument": """
def f(v: List[int]):
    return v.index("a")
""",
    "function_with_too_few_arguments": """
def helper(x, n: int):
    return x + n


def f(x):
    return helper(x)
""",
    "function_with_too_many_arguments": """
def helper(x):
    return x


def f(x):
    return helper(x, x)
""",
    "function_with_unknown_keyword": """
def helper(x, n: int = 1):
    return x + n


def f(x):
    return helper(x, m=2)
""",
    "function_with_argument_of_wrong_type": """
def helper(x, n: int):
    return x + n


def f(x):
    return helper(x, "three")
""",
    "argument_given_twice": """
def helper(x, n: int):
    return x + n


def f(x):
    return helper(x, 1, n=2)
""",
    "error_in_a_called_function": """
def inner(x):
    return x + undefined


def middle(x):
    return inner(x) * 2


def f(x):
    return middle(x)
""",
    "error_in_a_submodule": """
class Inner(nn.Module):
    def forward(self, x):
        return x.nope()


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x)
""",
    "recursion": """
def f(n: int):
    return 1 if n == 0 else n * f(n - 1)
""",
    "call_of_a_numpy_function": """
def f(x):
    return numpy.sin(x)
""",
    "builtin_that_is_not_supported": """
def f(x):
    return eval("x")
""",
    "super_in_a_function": """
def f(x):
    return super().forward(x)
""",
    # ------------------------------------------------------------------------------------------------- language limits
    "lambda_with_wrong_arguments": """
def f(x):
    g = lambda y: y + 1
    return g(x, z=x)
""",
    "decorated_nested_function": """
def f(x):
    @torch.no_grad()
    def g(y):
        return y + 1

    return g(x)
""",
    "nonlocal_with_early_return": """
def f(n: int):
    count = 0

    def add(k: int) -> int:
        nonlocal count
        if k > 3:
            return 0
        count += k
        return count

    return add(n)
""",
    "exception_groups": """
def f(x):
    try:
        x = x + 1
    except* ValueError:
        x = x - 1
    return x
""",
    "raise_without_exception": """
def f(n: int):
    try:
        n = 1 // n
    except ZeroDivisionError:
        n = 1
    if n > 0:
        raise
    return n
""",
    "generator": """
def f(n: int):
    for i in range(n):
        yield i
""",
    "global_statement": """
def f(x):
    global counter
    counter = 1
    return x
""",
    "variable_arguments": """
def f(*xs):
    return xs
""",
    "keyword_arguments": """
def f(x, **options):
    return x
""",
    "loop_over_a_set": """
def f(n: int):
    for i in {n, 2}:
        print(i)
""",
    "keywords_known_at_run_time": """
def g(a: int = 0, b: int = 1) -> int:
    return a + b


def f(d: Dict[str, int]):
    return g(**d)
""",
    "unknown_annotation": """
def f(x: "NoSuchType"):
    return x
""",
    "annotation_that_is_no_type": """
def f(x: 3):
    return x
""",
    "list_without_element_type": """
def f(v: list):
    return v
""",
    "list_of_what_is_no_type": """
def f(v: List[[]]):
    return v
""",
    "default_of_wrong_type": """
def f(x, n: int = "three"):
    return x + n
""",
    "closed_over_value": """
TABLE = {1: object()}


def f(n: int):
    return TABLE[n]
""",
    "raise_of_a_string": """
def f(n: int):
    raise "wrong"
""",
    "assignment_to_a_method": """
class M(nn.Module):
    def helper(self, x):
        return x

    def forward(self, x):
        self.helper = x
        return x
""",
    "assignment_to_a_constant": """
class M(nn.Module):
    steps: Final[int]

    def __init__(self):
        super().__init__()
        self.steps = 2

    def forward(self, x):
        self.steps = 3
        return x
""",
    "attribute_without_a_type": """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.thing = object()

    def forward(self, x):
        return x + self.thing
""",
    "empty_list_attribute": """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.values = []

    def forward(self, x):
        return x + len(self.values)
""",
    "module_call_with_wrong_arguments": """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x, x)
""",
}

TEXTS: dict[str, str] = {
    "text_break_outside_of_a_loop": """
def f(x):
    if True:
        break
    return x
""",
    "text_two_stars": """
def f(v: List[int]):
    a, *b, *c = v
    return a
""",
    "text_return_outside_of_a_function": """
return 1
""",
    "text_same_parameter_twice": """
def f(x, x):
    return x
""",
    "text_default_before_none": """
def f(x: int = 1, y: int):
    return x
""",
    "text_unclosed_bracket": """
def f(x):
    return torch.cat([x, x)
""",
    "text_missing_colon": """
def f(x)
    return x
""",
    "text_bad_indentation": """
def f(x):
        y = x
    return y
""",
    "text_unknown_character": """
def f(x):
    return x ? 1
""",
    "text_unfinished_string": """
def f(x):
    return "abc
""",
    "text_nothing_in_the_body": """
def f(x):
""",
    "text_expression_missing": """
def f(x):
    y =
    return x
""",
    "text_assignment_to_a_call": """
def f(x):
    g(x) = 1
    return x
""",
    "text_undefined_variable": """
def f(x):
    return y
""",
    "text_undefined_function": """
def f(x):
    return g(x)
""",
    "text_unknown_type": """
def f(x: Wrong):
    return x
""",
    "text_keyword_as_name": """
def f(x):
    for = 3
    return x
""",
}

# Name -> (text, the arguments of the call, as Python source)
CALLS: dict[str, tuple[str, str]] = {
    "call_without_an_argument": ("def f(x, n: int):\n    return x + n\n", "torch.ones(2)"),
    "call_with_too_many_arguments": ("def f(x):\n    return x\n", "torch.ones(2), 1, 2"),
    "call_with_a_string_for_an_int": ("def f(x, n: int):\n    return x + n\n", "torch.ones(2), 'two'"),
    "call_with_an_int_for_a_tensor": ("def f(x):\n    return x\n", "3"),
    "call_with_none_for_a_tensor": ("def f(x):\n    return x\n", "None"),
    "call_with_unknown_keyword": ("def f(x, n: int = 1):\n    return x + n\n", "torch.ones(2), m=2"),
    "call_with_an_argument_twice": ("def f(x, n: int = 1):\n    return x + n\n", "torch.ones(2), 1, n=2"),
    "call_with_a_mixed_list": ("def f(v: List[int]):\n    return v\n", "[1, 'two']"),
    "call_with_a_float_for_an_int": ("def f(n: int):\n    return n\n", "1.5"),
    "call_with_a_short_tuple": ("def f(t: Tuple[int, int]):\n    return t\n", "(1,)"),
    "call_with_a_wrong_dict": ("def f(d: Dict[str, int]):\n    return d\n", "{1: 'a'}"),
    "run_shapes_disagree": ("def f(x):\n    y = x + 1\n    return torch.mm(y, y)\n", "torch.ones(2, 3)"),
    "run_index_out_of_range": ("def f(v: List[int]):\n    return v[3]\n", "[1, 2]"),
    "run_missing_key": ("def f(d: Dict[str, int]):\n    return d['b']\n", "{'a': 1}"),
    "run_division_by_zero": ("def f(n: int):\n    return 10 // n\n", "0"),
    "run_raise_in_a_called_function": (
        "def check(n: int):\n    assert n > 0\n    return n\n\n\ndef f(n: int):\n    return check(n)\n",
        "-3",
    ),
    "run_assertion": ("def f(n: int):\n    assert n > 0, 'n must be positive'\n    return n\n", "0"),
    "run_undefined_in_one_branch": (
        "def f(x, flag: bool):\n    if flag:\n        y = x + 1\n    return y\n",
        "torch.ones(2), False",
    ),
    "run_undefined_in_else_branch": (
        "def f(x, flag: bool):\n    if flag:\n        pass\n    else:\n        y = x * 2\n    return y\n",
        "torch.ones(2), True",
    ),
    "run_defined_only_in_loop": ("def f(n: int):\n    for i in range(n):\n        last = i\n    return last\n", "0"),
    "run_deleted_variable": ("def f(x):\n    y = x + 1\n    del y\n    return y\n", "torch.ones(2)"),
}
