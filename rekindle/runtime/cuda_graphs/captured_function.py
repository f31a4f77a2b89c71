"""Functions whose calls are captured and replayed."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.runtime.cuda_graphs.arguments import NotCapturable, is_intercepted, kind_of, modes, with_tensors
from rekindle.runtime.cuda_graphs.attributes import Attributes, State, state_of, tensors_in
from rekindle.runtime.cuda_graphs.capturable import refusal_of
from rekindle.runtime.cuda_graphs.devices import CudaGraphDevice, GraphDevice
from rekindle.runtime.cuda_graphs.memory import OwnArguments, ResultCopies
from rekindle.runtime.executed import groups_in
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.settings import SETTINGS
from rekindle.runtime.version import Version, plain_function, underlying_code

WARM_UP: Final = 3
"""Number of calls of a kind that run without a graph, in which kernels are compiled."""
MAX_CAPTURES: Final = 64
"""Maximum number of captures of a version: each holds the memory of a call. Equal layers of a model share a version."""
_MAX_KINDS: Final = 256
"""Maximum number of kinds of calls that a version counts."""
_MAX_CHANGES: Final = 4
"""Number of captures of a kind that are discarded because attributes changed, before it is captured no more."""
_MAX_FAILURES: Final = 16
"""Number of failed captures after which a version makes no more."""
_TIMED_RUNS: Final = 5
"""Number of calls that are timed together, and of replays."""
_TOLERANCE: Final = 1.05
"""Maximum ratio of the total time of replays to that of calls: above 1, since measurements vary."""

_NO_TENSOR: Final = torch.empty(0, device="cpu")
"""In place of each tensor of a captured result."""


def captured_function(version: Version) -> CapturedFunction:
    """Return the object that calls a version, or replays a captured call of it; it is created at the first request."""
    found = version.captured
    if not isinstance(found, CapturedFunction):
        found = version.captured = CapturedFunction(version)
    return found


def replayed_function(function: Callable[..., Any], from_list: bool) -> Callable[..., Any]:
    """Return a function that calls ``function``, or replays its calls while CUDA graphs are on. With ``from_list``, it
    takes one list of the inputs. Return ``function`` itself if it is neither a plan nor interpreted, or if PyTorch was
    built without CUDA."""
    code = underlying_code(function)
    if code is None or not torch.backends.cuda.is_built():
        return function
    if from_list:
        return _ReplayedFromList(Version(code, plain_function(function)), function)
    return ReplayedFunction(Version(code, function))


class ReplayedFunction:
    """Calls the function of ``version``, or replays its calls while CUDA graphs are on."""

    __slots__ = ("version",)

    def __init__(self, version: Version) -> None:
        self.version = version

    def __call__(self, *arguments: Any) -> Any:
        version = self.version
        return (captured_function(version) if SETTINGS.cuda_graphs else version.function)(*arguments)


class _ReplayedFromList(ReplayedFunction):
    """Calls ``function`` on a list of arguments, or replays calls of ``version`` with them while CUDA graphs are on."""

    __slots__ = ("function",)

    def __init__(self, version: Version, function: Callable[[list[Any]], Any]) -> None:
        super().__init__(version)
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        (values,) = arguments
        if not SETTINGS.cuda_graphs:
            return self.function(values)
        return captured_function(self.version)(*values)


@dataclass(slots=True)
class _Capture:
    """A captured call. ``arguments`` and ``results`` are its own tensors. ``value`` is the returned value, with empty
    tensors in place of its tensors. ``function`` keeps the launched kernels alive. ``state`` is the state of the
    attributes at the capture."""

    arguments: OwnArguments
    results: ResultCopies
    value: Any
    replay: Callable[[], object]
    function: Callable[..., Any]
    state: State
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, given: list[Tensor], parameters: list[Tensor]) -> Any:
        """Copy the tensors ``given`` to the inputs, replay the capture, and return copies of the results."""
        with self.lock:
            self.arguments.write(given)
            self.replay()
            return with_tensors(self.value, self.results.of(given, parameters))


@dataclass(frozen=True, slots=True)
class _Times:
    """Seconds that the ``host`` takes for a call, at least, and that several calls take in ``total``, until the GPU has
    finished."""

    host: float
    total: float


@dataclass(slots=True)
class _Kind:
    """Calls of one kind: their number, the number of discarded captures, and the capture. ``is_refused``: calls of this
    kind cannot be captured. ``owners`` are the ids of the modules and parameters that a capture must not outlive."""

    owners: frozenset[int] = frozenset()
    calls: int = 0
    changes: int = 0
    is_refused: bool = False
    capture: _Capture | None = None


class CapturedFunction:
    """Calls the function of ``version``, or replays a capture of it. ``captures`` and ``replays`` are counts.
    ``reason`` is why a call could not be captured, or why a capture was discarded, the last time; None if there was
    none."""

    def __init__(self, version: Version, device: GraphDevice | None = None) -> None:
        self.function = version.complete()
        self.replays = 0
        self.reason: str | None = None
        self._code = version.code
        self._for_completed = version.for_completed
        self._device: GraphDevice = CudaGraphDevice() if device is None else device
        self._kinds: dict[Hashable, _Kind] = {}
        self._owners: set[int] = set()
        """The ids of modules and parameters for which :func:`_forget` is called at their end."""
        self._attributes: Attributes | None = None
        """The attributes that the graph reads, once it is known that it can be captured."""
        self._is_refused = False
        self._failures = 0
        self._lock = threading.Lock()

    @property
    def captures(self) -> int:
        return sum(kind.capture is not None for kind in list(self._kinds.values()))

    def __call__(self, *arguments: Any) -> Any:
        if self._is_refused or torch.is_grad_enabled():
            return self.function(*arguments)
        tensors: list[Tensor] = []
        parameters: list[Tensor] = []
        try:
            key = self._key(arguments, tensors, parameters)
        except NotCapturable as error:
            self.reason = str(error)
            return self.function(*arguments)
        kind = self._kinds.get(key) or self._new_kind(key, arguments, parameters)
        captured = kind.capture
        if captured is not None:
            assert self._attributes is not None
            if self._attributes.have_not_changed(arguments, captured.state):
                self.replays += 1
                return captured.run(tensors, parameters)
            self._discard(kind)
        if kind.is_refused or self._failures >= _MAX_FAILURES:
            return self.function(*arguments)
        if kind.calls < WARM_UP:
            _compile_eagerly(self._code)
            found = self.function(*arguments)
            kind.calls += 1  # only what has completed
            return found
        with self._lock:
            if kind.capture is None and not kind.is_refused:  # no other thread was faster
                self._capture_kind(kind, arguments, tensors, parameters)
            captured = kind.capture
        return self.function(*arguments) if captured is None else captured.run(tensors, parameters)

    def _key(self, arguments: Sequence[Any], tensors: list[Tensor], parameters: list[Tensor]) -> Hashable:
        """Return the key of the kind of a call, and append its tensors to ``tensors`` and ``parameters``.

        Raises:
            NotCapturable: calls like this one are not captured.
        """
        if is_intercepted():
            raise NotCapturable("a mode or a transform has to see each operator")
        kinds = tuple([kind_of(each, tensors, parameters) for each in arguments])
        if not tensors:
            raise NotCapturable("there is no tensor among the arguments")
        device = tensors[0].device
        if not self._device.owns(tensors[0]) or any(each.device != device for each in (*tensors, *parameters)):
            raise NotCapturable("an argument is not on the GPU of the others")
        if self._device.is_capturing():
            raise NotCapturable("the caller captures a graph")
        return kinds, modes(), device, self._device.stream(device)

    def _new_kind(self, key: Hashable, arguments: Sequence[Any], parameters: list[Tensor]) -> _Kind:
        """Return the kind of a first call. Its capture lives no longer than the modules and parameters among the
        arguments. If there are too many kinds, drop those without a capture; if that does not suffice, the kind is
        refused."""
        if len(self._kinds) >= _MAX_KINDS:
            self._kinds = {each: kind for each, kind in list(self._kinds.items()) if kind.capture or kind.is_refused}
        if len(self._kinds) >= _MAX_KINDS or self._failures >= _MAX_FAILURES:
            return _Kind(is_refused=True)
        owners = [*parameters, *(each for each in arguments if isinstance(each, torch.nn.Module))]
        kind = self._kinds[key] = _Kind(frozenset(map(id, owners)))
        for each in owners:
            if id(each) not in self._owners:
                self._owners.add(id(each))
                weakref.finalize(each, _forget, weakref.ref(self), id(each)).atexit = False
        return kind

    def _discard(self, kind: _Kind) -> None:
        """Drop the capture of a kind, because attributes have changed."""
        kind.capture, kind.calls = None, 0
        kind.changes += 1
        kind.is_refused = kind.changes >= _MAX_CHANGES
        self.reason = "attributes have changed since calls were captured"

    def _capture_kind(
        self, kind: _Kind, arguments: Sequence[Any], tensors: list[Tensor], parameters: list[Tensor]
    ) -> None:
        """Capture a call, if that is possible. Errors of the program are ignored here: the normal call that follows
        raises them."""
        kind.is_refused = True  # whatever happens, it is tried once
        try:
            kind.capture = self._capture(arguments, tensors, parameters)
            kind.is_refused = False
        except NotCapturable as error:
            self.reason = str(error)
        except Exception as error:  # of the program or of PyTorch, such as lack of memory
            self.reason = f"a call raises {type(error).__name__} in a capture: {(str(error).splitlines() or [''])[0]}"
        self._failures += kind.is_refused
        self._is_refused = self._is_refused or (self._failures >= _MAX_FAILURES and not self.captures)

    def _capture(self, arguments: Sequence[Any], tensors: list[Tensor], parameters: list[Tensor]) -> _Capture:
        device = tensors[0].device
        if self._attributes is None:
            self._is_refused = True  # unless the graph can be captured
            reason = refusal_of(self._code.graph)
            if reason is not None:
                raise NotCapturable(reason)
            self._attributes = Attributes(self._code.graph)
            self._is_refused = False
        if self.captures >= MAX_CAPTURES:
            raise NotCapturable(f"there are {MAX_CAPTURES} captures already")
        attributes = self._attributes.of(arguments)
        state, held = state_of(attributes), list(tensors_in(attributes))
        if any(each.device != device for each in held):
            raise NotCapturable("an attribute is on another device")
        with self._device.prepared(device):
            copies = OwnArguments(tensors)
            remaining = iter(copies.tensors)
            own = [with_tensors(each, remaining, parameters=False) for each in arguments]
            function = self._function_of_capture(own)
            replay, value = self._device.capture(lambda: function(*own))
            results: list[Tensor] = []
            kind_of(value, results)
            _check_containers(value, [*own, *attributes])
            copies_of_results = ResultCopies(results, copies.tensors, parameters, held, device)
            value = with_tensors(value, repeat(_NO_TENSOR))
            made = _Capture(copies, copies_of_results, value, replay, function, state)
            self._check_time(lambda: made.run(tensors, parameters), lambda: self.function(*own))
        return made

    def _check_time(self, replay: Callable[[], Any], call: Callable[[], Any]) -> None:
        """Check that a replay takes no longer than a call, by timing several of each.

        Raises:
            NotCapturable: a replay takes longer on the host, or more than 5 % longer in total.
        """
        of_replay, of_call = self._times(replay), self._times(call)
        if of_replay.host > of_call.host or of_replay.total > _TOLERANCE * of_call.total:
            raise NotCapturable("a replay takes longer than a call")

    def _times(self, run: Callable[[], Any]) -> _Times:
        """Return the times of several calls."""
        host, total = [], []
        for _ in range(2):
            first = self._device.now()
            for _ in range(_TIMED_RUNS):
                began = self._device.now()
                run()
                host.append(self._device.now() - began)
            self._device.synchronize()
            total.append(self._device.now() - first)
        return _Times(min(host), min(total))

    def _function_of_capture(self, arguments: Sequence[Any]) -> Callable[..., Any]:
        """Return the function that is captured for calls like this one, which have completed. If it is not
        :attr:`function`, it is called first, so that its kernels are compiled."""
        best = self._for_completed(arguments)
        if best is None:
            return self.function
        for _ in range(WARM_UP):
            _compile_eagerly(best.code)
            best.function(*arguments)
        return best.function


def _forget(function: weakref.ref[CapturedFunction], owner: int) -> None:
    """Drop the kinds of calls of a module or a parameter, because it is gone."""
    captured = function()
    if captured is not None:
        captured._owners.discard(owner)
        captured._kinds = {key: kind for key, kind in list(captured._kinds.items()) if owner not in kind.owners}


def _compile_eagerly(code: Code) -> None:
    """Mark the kernels of ``code`` for compilation in its next call."""
    for group in groups_in(code):
        group.compile_eagerly()


def _check_containers(value: Any, others: Sequence[Any]) -> None:
    """Check that no list or dict in ``value`` belongs to an argument or an attribute.

    Raises:
        NotCapturable: ``value`` holds such a list or dict, of which a replay would return a copy.
    """
    known = {id(each) for other in others for each in _containers_in(other)}
    if any(id(each) in known for each in _containers_in(value)):
        raise NotCapturable("a result is a list or a dict of an argument or an attribute")


def _containers_in(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, dict)):
        yield value
    if isinstance(value, (list, tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _containers_in(each)
