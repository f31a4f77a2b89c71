"""Import a :class:`torch.export.ExportedProgram` as a compiled module.

1. :mod:`rekindle.importing.fx.module_hierarchy` makes the modules: their names, parameters and buffers.
2. Arguments are flattened into the leaves that the graph takes (:mod:`rekindle.importing.fx.pytrees`), and checked
   against the exported constraints (:mod:`rekindle.importing.guards`).
3. The graph is read node by node (:mod:`rekindle.importing.fx.fx_importer`). Nodes of a module call are in a block of
   their own, as in a trace.
4. Mutated state is written back, the results are unflattened, and the blocks become methods
   (:mod:`rekindle.tracing.fixup_trace_scopes`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import IO, Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

import rekindle.importing.fx.control_flow
import rekindle.importing.fx.operators
import rekindle.importing.fx.symbolic_scalars  # noqa: F401  (these three fill the table of what reads calls)
from rekindle.errors import CaptureError, CompileError, ProgramErrors
from rekindle.importing.decompositions import without_transforms
from rekindle.importing.files import load_exported
from rekindle.importing.fx.fx_importer import FxImporter, ImportedValue, as_list
from rekindle.importing.fx.module_hierarchy import add_modules, calls_of, skeleton_of
from rekindle.importing.fx.operators import read_operator
from rekindle.importing.fx.pytrees import flatten, leaves_of, tree_of, unflatten
from rekindle.importing.guards import check_arguments
from rekindle.ir.graph import Graph, Node, Value
from rekindle.program.modules.module import ScriptModule
from rekindle.tracing.fixup_trace_scopes import lower_to_methods
from rekindle.tracing.modules import module_for_trace
from rekindle.tracing.recording.recorder import SCOPE, Path, Recorder


def from_exported(program: ExportedProgram | str | os.PathLike[str] | IO[bytes]) -> ScriptModule:
    """Compile a module that computes what a program of ``torch.export`` computes.

    It has the parameters and buffers of the program under their names, and its modules, as far as the program names
    them. It checks its arguments as the program does, and writes to buffers and arguments where the program writes.

    Args:
        program: an ``ExportedProgram``, or a ``.pt2`` file: a path or a file open for reading.

    Raises:
        CaptureError: one part of the program cannot be imported.
        ProgramErrors: several parts cannot be imported; ``errors`` lists them.
        OSError: the file cannot be read.
        ValueError: the file is not one of ``torch.export``.

    Example:
        >>> net = torch.nn.Linear(3, 2)
        >>> imported = rekindle.from_exported(torch.export.export(net, (torch.ones(1, 3),)))
        >>> torch.equal(imported(torch.ones(1, 3)), net(torch.ones(1, 3)))
        True
    """
    if not isinstance(program, ExportedProgram):
        program = load_exported(program)
    return _Import(without_transforms(program)).run()


class _Import:
    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        self.signature = program.graph_signature
        self.recorder = Recorder({}, {})
        self.graph: Graph = self.recorder.graph
        self.reader = FxImporter(self.graph, self.attribute, read_operator)

    def run(self) -> ScriptModule:
        """Return the compiled module of the program.

        Raises:
            CaptureError: a part of the program cannot be imported. Several problems are raised as ProgramErrors.
        """
        skeleton = skeleton_of(self.program)
        add_modules(skeleton, self.program.graph_module)
        module = module_for_trace(skeleton)
        try:
            names, env = self.arguments()
            result = self.body(env)
            if self.reader.problems:
                raise _all_of(self.reader.problems)
            lower_to_methods(self.recorder, [result], module, "forward", names)
        finally:
            self.recorder.close()
        return module

    # -------------------------------------------------------------------------------------------------------- arguments

    def arguments(self) -> tuple[list[str], dict[fx.Node, ImportedValue]]:
        """Add the parameters of ``forward`` and the checks of arguments to the graph. Return the parameter names, and
        the imported values of the placeholders."""
        placeholders = self.program.graph_module.graph.find_nodes(op="placeholder")
        env: dict[fx.Node, ImportedValue] = {}
        leaves = []
        for node, spec in zip(placeholders, self.signature.input_specs, strict=True):
            if spec.kind is InputKind.USER_INPUT:
                leaves.append((node, spec.arg))
            else:
                assert spec.target is not None
                env[node] = self.recorder.attribute(tuple(spec.target.split(".")))
        names, specs = self._parameters()
        given = iter([argument for _, argument in leaves])
        trees = [tree_of(spec, name, given) for name, spec in zip(names, specs, strict=True)]
        inputs = [self.graph.add_input(name, tree.type) for name, tree in zip(names, trees, strict=True)]
        values = [value for tree, each in zip(trees, inputs, strict=True) for value in flatten(self.reader, each, tree)]
        for (node, argument), value in zip(leaves, values, strict=True):
            env[node] = argument.value if isinstance(argument, ConstantArgument) else value
        checked = [leaf for tree in trees for leaf in leaves_of(tree)]
        check_arguments(self.reader, self.program, checked, [node for node, _ in leaves], values)
        return names, env

    def _parameters(self) -> tuple[list[str], list[Any]]:
        """Return the names of the parameters of ``forward``, and the pytree spec of each."""
        args, kwargs = self.program.call_spec.in_spec.children()
        specs = [*args.children(), *kwargs.children()]
        known = self.program.module_call_graph[0].signature
        names = getattr(known, "forward_arg_names", None) or []
        if len(names) != len(specs):
            names = [f"arg{index}" for index in range(len(args.children()))] + list(kwargs.context)
        return [name if name.isidentifier() else f"arg{i}" for i, name in enumerate(names)], specs

    def attribute(self, reader: FxImporter, module: fx.GraphModule, name: str) -> ImportedValue:
        """Return the imported value of an attribute of a graph's module: a tensor as a constant, other objects as they
        are."""
        held: object = module
        for part in name.split("."):
            held = getattr(held, part)
        return reader.value(held) if isinstance(held, torch.Tensor) else held

    # ------------------------------------------------------------------------------------------------------------- body

    def body(self, env: dict[fx.Node, ImportedValue]) -> Value:
        """Import all nodes, each in the scope of the module call that contained it; return the result of ``forward``.

        Raises:
            CaptureError: a node cannot be imported. Several problems are raised as ProgramErrors.
        """
        module = self.program.graph_module
        scopes = _Scopes(self.graph)
        output: fx.Node | None = None
        for node in module.graph.nodes:
            if node.op == "output":
                output = node
            elif node.op != "placeholder":
                scopes.enter(node)
                env[node] = self.reader.read_node(module, node, env)
        scopes.leave()
        assert output is not None
        if self.reader.problems:
            raise _all_of(self.reader.problems)
        return self.results([_looked_up(item, env) for item in as_list(output.args[0])], env)

    def results(self, outputs: Sequence[ImportedValue], env: Mapping[fx.Node, ImportedValue]) -> Value:
        """Insert writes of mutated state, and return the unflattened result. ``outputs`` are the outputs of the
        exported graph, and ``env`` has the imported values of its nodes. Unsupported kinds of outputs, such as
        gradients, are added to the problems of the reader."""
        returned: list[ImportedValue] = []
        by_name = {node.name: imported for node, imported in env.items() if node.op == "placeholder"}
        for imported, spec in zip(outputs, self.signature.output_specs, strict=True):
            match spec.kind:
                case OutputKind.BUFFER_MUTATION | OutputKind.PARAMETER_MUTATION:
                    assert spec.target is not None
                    self.write(self.recorder.attribute(tuple(spec.target.split("."))), imported)
                case OutputKind.USER_INPUT_MUTATION:
                    self.write(by_name[spec.target or ""], imported)
                case OutputKind.USER_OUTPUT | OutputKind.LOSS_OUTPUT:
                    is_constant = isinstance(spec.arg, ConstantArgument)
                    returned.append(spec.arg.value if is_constant and imported is None else imported)
                case _:
                    self.reader.problems.append(
                        CaptureError(f"the program returns a {spec.kind.name.lower().replace('_', ' ')}")
                    )
        spec_of_results = self.program.call_spec.out_spec
        assert spec_of_results is not None
        return unflatten(self.reader, spec_of_results, iter(returned))

    def write(self, held: ImportedValue, imported: ImportedValue) -> None:
        """Insert the write of ``imported``, the final value of a mutated tensor, to ``held``, the tensor, unless
        operators in the graph have written it in place."""
        if not _is_same(imported, held):
            self.reader.insert("aten::copy_", held, imported)


def _is_same(imported: ImportedValue, held: ImportedValue) -> bool:
    """Return whether a value is ``held`` itself, or the result of in-place operators on it, so that no write is
    needed."""
    while isinstance(imported, Value) and imported is not held:
        node = imported.node
        schema = node.schema
        alias = None if schema is None or not schema.arguments else schema.arguments[0].alias
        if alias is None or not alias.is_write or imported.offset:
            return False
        imported, *_ = node.inputs
    return imported is held


def _looked_up(item: Any, env: Mapping[fx.Node, ImportedValue]) -> ImportedValue:
    return env[item] if isinstance(item, fx.Node) else item


def _all_of(problems: Sequence[CompileError]) -> Exception:
    return problems[0] if len(problems) == 1 else ProgramErrors(problems)


class _Scopes:
    """The module calls that enclose the insertion point of ``graph``, as nested blocks."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.entered: list[tuple[Any, Path, Node]] = []

    def enter(self, node: fx.Node) -> None:
        """Move the insertion point into the scope of ``node``; scopes are left and opened as needed. A node without a
        recorded module call remains in the current scope."""
        calls = calls_of(node)
        if not calls:
            return
        wanted: list[tuple[Any, Path]] = []
        for key, path, _ in calls:
            around = wanted[-1][1] if wanted else ()
            if len(path) > len(around) and path[: len(around)] == around:
                wanted.append((key, path))
        shared = 0
        for (key, _, _), (other, _) in zip(self.entered, wanted, strict=False):
            if key != other:
                break
            shared += 1
        self._leave_to(shared)
        for key, path in wanted[shared:]:
            made = self.graph.create(SCOPE, outputs=0, attributes={"path": list(path)})
            block = self.graph.insert_node(made).add_block()
            self.entered.append((key, path, made))
            self.graph.insert_point = block.return_node

    def leave(self) -> None:
        """Leave all scopes: move the insertion point back to the outermost block."""
        self._leave_to(0)

    def _leave_to(self, count: int) -> None:
        if len(self.entered) > count:
            outermost = self.entered[count][2]
            del self.entered[count:]
            self.graph.insert_point = outermost.next
