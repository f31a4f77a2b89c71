"""Classes in program text: Python classes whose methods are compiled."""

import pytest

import rekindle
from rekindle.errors import ArgumentError, CompileError, UndefinedNameError, UnsupportedError
from tests.support.messages import message_of

ACCOUNTS = """
class Account(object):
    "Holds money."
    RATE = 0.5
    history: List[int]

    def __init__(self, n: int, name: str = "x"):
        self.n = n
        self.name = name
        self.history = []

    def deposit(self, k: int) -> Account:
        self.n += k
        self.history.append(k)
        return self

    def interest(self) -> float:
        return self.n * self.RATE

    def __len__(self) -> int:
        return len(self.history)

    def __enter__(self) -> int:
        return self.n

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self.n = -1

class Bank:
    def __init__(self, account: Account):
        self.accounts = [account]

def f(n: int):
    account = Account(n)
    bank = Bank(account)
    bank.accounts[0].deposit(4).deposit(n)
    with account as found:
        result = found + 1
    return account, len(account), account.interest(), result

def g(account: Account) -> int:
    return account.n + len(account)
"""


def test_programs_use_their_classes():
    unit = rekindle.CompilationUnit(ACCOUNTS)
    account, length, interest, result = unit.f(3)
    assert (length, interest, result) == (2, -0.5, 11)
    assert (account.n, account.name, account.history) == (-1, "x", [4, 3])
    assert isinstance(account, unit.Account)


def test_python_uses_the_classes():
    unit = rekindle.CompilationUnit(ACCOUNTS)
    account = unit.Account(4, name="q")
    assert account.deposit(10) is account
    assert (account.n, account.name, len(account), account.RATE) == (14, "q", 1, 0.5)
    assert unit.g(account) == 15
    assert "Account" in dir(unit)
    with account as found:
        assert found == 14
    assert account.n == -1
    assert message_of(ArgumentError, lambda: unit.Account("a")) == (
        "Account() argument 'n' (position 1) takes int, but got a str: 'a'\n"
        "Signature: Account(n: int, name: str = 'x') -> NoneType"
    )


def test_failing_classes_add_nothing():
    unit = rekindle.CompilationUnit()
    with pytest.raises(UndefinedNameError):
        unit.define("class A:\n    def f(self):\n        return self.missing\n")
    assert message_of(AttributeError, lambda: unit.A) == "there is no function 'A' in this compilation unit"
    unit.define("class A:\n    def f(self) -> int:\n        return 3\n")
    assert unit.A().f() == 3
    assert message_of(CompileError, lambda: unit.define("def A():\n    return 1\n")) == (
        "the class 'A' is defined already\n    def A():\n        ^"
    )


def test_inheritance():
    text = "class A:\n    def f(self):\n        return 3\n\nclass B(A):\n    pass\n"
    assert message_of(UnsupportedError, lambda: rekindle.CompilationUnit(text)) == (
        "the class 'B' inherits from 'A'; a class that a program uses inherits from nothing\n"
        "        def f(self):\n"
        "            return 3\n"
        "\n"
        "    class B(A):\n"
        "            ^\n"
        "Hint: let it hold an object of 'A' as an attribute"
    )


def test_what_cannot_stand_in_a_class():
    assert message_of(UnsupportedError, lambda: rekindle.CompilationUnit("class A:\n    print(3)\n")) == (
        "this is not supported in the body of a class\n    class A:\n        print(3)\n        ^^^^^^^^"
    )
