"""Which constructs a program uses, for the histogram."""

from __future__ import annotations

import ast

_OPERATORS = {
    "Add": "+",
    "Sub": "-",
    "Mult": "*",
    "Div": "/",
    "FloorDiv": "//",
    "Mod": "%",
    "Pow": "**",
    "LShift": "<<",
    "RShift": ">>",
    "BitAnd": "&",
    "BitOr": "|",
    "BitXor": "^",
    "MatMult": "@",
}
_PLAIN = {
    "If": "if",
    "For": "for",
    "While": "while",
    "Try": "try",
    "Raise": "raise",
    "Assert": "assert",
    "Break": "break",
    "Continue": "continue",
    "With": "with",
    "Lambda": "lambda",
    "IfExp": "conditional expression",
    "ListComp": "list comprehension",
    "SetComp": "set comprehension",
    "DictComp": "dict comprehension",
    "GeneratorExp": "generator expression",
    "NamedExpr": "walrus",
    "JoinedStr": "f-string",
    "Starred": "star",
    "Delete": "del",
    "AnnAssign": "annotated assignment",
    "Set": "set display",
    "Dict": "dict display",
    "ClassDef": "class",
}


def constructs(source: str) -> list[str]:
    """The names of the constructs, each once, without those of the calls' arguments."""
    tree = ast.parse(source.partition("\nSUBJECT =")[0])
    found: set[str] = set()
    for node in ast.walk(tree):
        name = type(node).__name__
        if name in _PLAIN:
            found.add(_PLAIN[name])
        match node:
            case ast.BinOp():
                found.add(f"operator {_OPERATORS[type(node.op).__name__]}")
            case ast.AugAssign():
                found.add(f"augmented {_OPERATORS[type(node.op).__name__]}=")
                if isinstance(node.target, ast.Subscript):
                    found.add("augmented item")
                if isinstance(node.target, ast.Attribute):
                    found.add("augmented attribute")
            case ast.Compare() if len(node.ops) > 1:
                found.add("chained comparison")
            case ast.Call(func=ast.Name(id=called)):
                found.add(f"{called}()" if called.islower() and called not in ("f",) else "class()")
            case ast.Call(func=ast.Attribute(attr=called, value=value)):
                owner = value.id if isinstance(value, ast.Name) and value.id in ("math", "torch", "F") else ""
                found.add(f"{owner}.{called}()")
            case ast.For(orelse=[_, *_]) | ast.While(orelse=[_, *_]):
                found.add("else of a loop")
            case ast.Try(finalbody=[_, *_]):
                found.add("finally")
            case ast.Assign(targets=[ast.Tuple()]):
                found.add("unpacking")
            case ast.Assign(targets=[ast.Subscript()]):
                found.add("item assignment")
            case ast.FunctionDef():
                if node.args.defaults:
                    found.add("default argument")
                found.update("property" for each in node.decorator_list if getattr(each, "id", "") == "property")
                returns = sum(isinstance(each, ast.Return) for each in ast.walk(node))
                if returns > 1:
                    found.add("early return")
    return sorted(found)
