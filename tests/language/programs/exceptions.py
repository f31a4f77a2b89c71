"""try, except, else and finally."""

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

from rekindle.errors import TypeMismatchError, UnsupportedError
from tests.language.corpus import program, refused

X = torch.tensor([[1.0, -2.0]])
Y = torch.tensor([[0.5, 3.0], [1.0, 1.0]])


class TooLargeError(ValueError):
    """An exception of the user."""


ARITHMETIC = (ZeroDivisionError, OverflowError)


def checked(n: int) -> int:
    if n > 10:
        raise TooLargeError(f"{n} is too large")
    if n < 0:
        raise KeyError(f"no {n}")
    return 100 // n


@program("statement.try", (5,), (0,), torch="refuses")
def caught_of_python(n: int) -> int:
    try:
        result = 10 // n
    except ZeroDivisionError:
        result = -1
    return result


@program("statement.try", (["a", "b"],), (["b"],), torch="refuses")
def caught_key(keys: List[str]) -> int:
    known = {"a": 1, "b": 2}
    found = 0
    for key in ["a", "c"] + keys:
        try:
            found += known[key]
        except KeyError:
            found += 100
    return found


@program("statement.try", (X, Y), (Y, X), torch="refuses")
def caught_of_an_operator(x: Tensor, y: Tensor) -> Tensor:
    try:
        return torch.mm(x, y)
    except RuntimeError:
        return x + y


@program("statement.try exception.text", (X, Y.view(4)[:3]), (X, Y), torch="refuses")
def text_of_an_operator(x: Tensor, y: Tensor) -> str:
    try:
        z = x + y
    except RuntimeError as error:
        return str(error)
    return f"fits: {z.shape[0]}"


@program("statement.try exception.text", (20,), (-1,), torch="refuses")
def caught_of_the_user(n: int) -> str:
    try:
        return str(checked(n))
    except TooLargeError as error:
        return f"too large: {error}"
    except (KeyError, IndexError) as error:
        return "key " + str(error)


@program("statement.try", (0,), (4,), torch="refuses")
def not_caught(n: int) -> int:
    try:
        return checked(n)
    except KeyError:
        return -1


@program("statement.try", (0,), (11,), torch="refuses")
def base_classes_catch(n: int) -> str:
    try:
        checked(n)
    except ArithmeticError:
        return "arithmetic"
    except ValueError:
        return "value"
    return "none"


@program("statement.try", (0,), (3,), torch="refuses")
def tuple_of_classes(n: int) -> int:
    try:
        return checked(n)
    except ARITHMETIC:
        return 7


@program("statement.try", (0,), (-3,), torch="refuses")
def caught_whatever_it_is(n: int) -> int:
    try:
        return checked(n)
    except:  # noqa: E722
        return 0


@program("statement.try statement.try_else", (4,), (0,), torch="refuses")
def with_else(n: int) -> List[str]:
    said: List[str] = []
    try:
        value = checked(n)
    except ZeroDivisionError:
        said.append("zero")
    else:
        said.append(f"value {value}")
    said.append("end")
    return said


@program("statement.try statement.try_else", (2,), (50,), torch="refuses")
def else_is_not_tried(n: int) -> int:
    try:
        value = 100 // n
    except ValueError:
        return -1
    else:
        return checked(value)


@program("statement.try statement.finally", (4,), (0,), torch="refuses")
def with_finally(n: int) -> int:
    total = 0
    try:
        total += checked(n)
    finally:
        total += 1
        print("finally", total)  # noqa: T201
    return total


@program("statement.try statement.finally", (4,), (30,), torch="refuses")
def finally_behind_return(n: int) -> str:
    try:
        return str(checked(n))
    except TooLargeError:
        return "large"
    finally:
        print("left")  # noqa: T201


@program("statement.try statement.finally", ([4, 0, 5],), ([2, -1, 20, 1],), torch="refuses")
def finally_in_a_loop(numbers: List[int]) -> Tuple[int, int]:
    done = 0
    total = 0
    for n in numbers:
        try:
            total += checked(n)
        except ZeroDivisionError:
            continue
        except KeyError:
            break
        finally:
            done += 1
    return total, done


@program("statement.try statement.finally", (3,), (0,), torch="refuses")
def finally_that_returns(n: int) -> int:
    result = 1
    try:
        result = checked(n)
    finally:
        return result + 1  # noqa: B012


@program("statement.try", ([3, 0, 8],), ([5, 4],), torch="refuses")
def break_out_of_try(numbers: List[int]) -> Tuple[int, int]:
    last = -1
    steps = 0
    for n in numbers:
        steps += 1
        try:
            last = 60 // n
            if n == 5:
                break
        except ZeroDivisionError:
            continue
        steps += 10
    return last, steps


@program("statement.try", (3,), (0,), torch="refuses")
def retried(failures: int) -> int:
    attempts = 0
    while True:
        attempts += 1
        try:
            if attempts <= failures:
                raise RuntimeError("not yet")
            break
        except RuntimeError:
            if attempts > 5:
                raise
    return attempts


@program("statement.try", (4,), (0,), torch="refuses")
def assigned_before_the_exception(n: int) -> List[int]:
    stage = 0
    value = -1
    try:
        stage = 1
        value = 12 // n
        stage = 2
        value = [1, 2][value]
        stage = 3
    except ZeroDivisionError:
        value = 100
    except IndexError:
        value += 1000
    return [stage, value]


@program("statement.try", ([1, 2],), ([1, 2, 3, 4],), torch="refuses")
def written_before_the_exception(items: List[int]) -> List[int]:
    try:
        items.append(7)
        items[3] = 9
        items.append(8)
    except IndexError:
        items.append(-1)
    return items


@program("statement.try", (X,), (Y,), torch="refuses")
def tensors_written_before(x: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    try:
        y += 1
        y[1] = 5.0
    except IndexError:
        y *= 3
    return y


@program("statement.try statement.raise_again", (0,), (20,), torch="refuses")
def raised_again(n: int) -> int:
    try:
        return checked(n)
    except ZeroDivisionError:
        print("zero")  # noqa: T201
        raise
    except ValueError as error:
        print("value", error)  # noqa: T201
        raise error


@program("statement.try statement.raise_again", (0,), (3,), torch="refuses")
def raised_from(n: int) -> int:
    try:
        return checked(n)
    except ZeroDivisionError as error:
        raise RuntimeError("no such part: " + str(error)) from error


@program("statement.try", (0,), (20,), torch="refuses")
def nested(n: int) -> List[str]:
    said = ["start"]
    try:
        try:
            said.append("inner")
            checked(n)
        except ZeroDivisionError:
            said.append("zero")
            checked(20)
        said.append("never")
    except TooLargeError as error:
        said.append(str(error))
    return said


@program("statement.try", (2,), (0,), torch="refuses")
def state_through_two(n: int) -> Tuple[int, str]:
    x = 0
    word = "none"
    try:
        x = 1
        try:
            x = 2
            x = 10 // n
            word = "divided"
        except KeyError:
            x = 3
        x += 100
    except ZeroDivisionError:
        word = "zero"
    return x, word


@program("statement.try exception.isinstance", (7,), (0,), torch="refuses")
def names_of_classes(last: int) -> List[str]:
    names = []
    for n in range(last, -1, -1):
        try:
            if n == 1:
                [1][n]
            if n == 2:
                raise ValueError("no")
            if n == 3:
                torch.ones(2).view(3)
            if n == 4:
                {"a": 1}["b"]
            if n == 5:
                assert n < 5, "five"
            if n == 6:
                torch.linalg.inv(torch.zeros(2, 2))
            names.append(str(6 // n))
        except Exception as error:
            name = type(error).__name__
            names.append(f"{name}: {error}" if n > 3 else error.__class__.__name__)
    return names


@program("statement.try exception.isinstance", (0,), (-4,), torch="refuses")
def asks_for_the_class(n: int) -> str:
    try:
        checked(n)
    except Exception as error:
        if isinstance(error, (KeyError, ValueError)):
            return "lookup"
        if isinstance(error, ZeroDivisionError):
            return "zero " + str(error)
        return "other"
    return "fine"


@program("statement.try", (None,), (3,), torch="refuses")
def refined_within(n: Optional[int]) -> int:
    try:
        assert n is not None, "nothing"
        return n + 1
    except AssertionError as error:
        return len(str(error))


@program("statement.try", ("12",), ("1x",), torch="refuses")
def parsed(text: str) -> Optional[int]:
    try:
        return int(text)
    except ValueError:
        return None


@program("statement.try", ("a",), ("b",), torch="refuses")
def widened(key: str) -> Optional[int]:
    found: Optional[int] = None
    table: Dict[str, int] = {"a": 1}
    try:
        found = table[key]
    except KeyError:
        pass
    return found


@program("statement.try", (X,), (Y,), torch="refuses")
class TriesTwoWays(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.failures = 0

    def forward(self, x: Tensor) -> Tensor:
        try:
            y = self.linear(x).view(4)
        except RuntimeError:
            self.failures += 1
            y = x.sum()
        return torch.relu(y) + self.failures


@program("statement.try", (X,), (Y,), torch="refuses")
def within_with(x: Tensor) -> Tuple[bool, bool]:
    with torch.no_grad():
        try:
            x.view(4)
            inside = torch.is_grad_enabled()
        except RuntimeError:
            inside = not torch.is_grad_enabled()
    return inside, torch.is_grad_enabled()


@program("statement.try", (X,), (Y,), torch="refuses")
def with_within(x: Tensor) -> Tuple[bool, bool]:
    inside = True
    try:
        with torch.no_grad():
            inside = torch.is_grad_enabled()
            x.view(4)
    except RuntimeError:
        return torch.is_grad_enabled(), not inside
    return torch.is_grad_enabled(), inside


@refused("statement.raise_again", UnsupportedError, "'raise' without an exception is outside of a handler")
def raises_nothing(n: int) -> int:
    if n > 0:
        raise  # noqa: PLE0704
    return n


@program("statement.try", (5,), (0,), torch="refuses")
def defined_by_the_body_only(n: int) -> int:
    try:
        y = 10 // n
    except ZeroDivisionError:
        print("zero")  # noqa: T201
    return y


@refused("statement.try", TypeMismatchError, "only classes of exceptions can be caught")
def catches_a_number(n: int) -> int:
    try:
        return 10 // n
    except n:
        return 1


@refused("statement.try exception.attribute", UnsupportedError, "'args' of an exception that was caught is not known")
def arguments_of_an_exception(n: int) -> int:
    try:
        return 10 // n
    except ZeroDivisionError as error:
        return len(error.args)


@program("statement.raise_arguments", (5,), (-1,))
def raises_a_key(n: int) -> int:
    if n > 0:
        raise KeyError(n)
    raise KeyError("text")


@program("statement.raise_arguments", (5,), (-1,))
def raises_with_several(n: int) -> int:
    if n > 0:
        raise ValueError("too large", n)
    raise IndexError(n, 2.5, None)


@program("statement.raise_arguments exception.text", (5,), (-1,), torch="refuses")
def texts_of_keys(n: int) -> List[str]:
    texts: List[str] = []
    try:
        raise KeyError(n)
    except KeyError as error:
        texts.append(str(error))
    try:
        raise KeyError(str(n))
    except KeyError as error:
        texts.append(str(error))
    return texts
