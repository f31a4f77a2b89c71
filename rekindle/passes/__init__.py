"""Graph to graph: one file a pass."""

from rekindle.passes.annotate_warns import AnnotateWarns as AnnotateWarns
from rekindle.passes.batch_mm import BatchMM as BatchMM
from rekindle.passes.canonicalize_modified_loops import CanonicalizeModifiedLoops as CanonicalizeModifiedLoops
from rekindle.passes.canonicalize_ops import CanonicalizeOps as CanonicalizeOps
from rekindle.passes.canonicalize_outputs import CanonicalizeOutputs as CanonicalizeOutputs
from rekindle.passes.common_subexpression_elimination import (
    CommonSubexpressionElimination as CommonSubexpressionElimination,
)
from rekindle.passes.constant_pooling import ConstantPooling as ConstantPooling
from rekindle.passes.constant_propagation import ConstantPropagation as ConstantPropagation
from rekindle.passes.dead_code_elimination import DeadCodeElimination as DeadCodeElimination
from rekindle.passes.decompose_ops import DecomposeOps as DecomposeOps
from rekindle.passes.eliminate_guards import EliminateGuards as EliminateGuards
from rekindle.passes.fold_arithmetic import FoldArithmetic as FoldArithmetic
from rekindle.passes.fold_batch_norm import FoldBatchNorm as FoldBatchNorm
from rekindle.passes.fold_constant_tensors import FoldConstantTensors as FoldConstantTensors
from rekindle.passes.forward_rank_queries import ForwardRankQueries as ForwardRankQueries
from rekindle.passes.freezing import Freezing as Freezing
from rekindle.passes.hoist_from_if import HoistFromIf as HoistFromIf
from rekindle.passes.inlining import Inlining as Inlining, inline as inline
from rekindle.passes.insert_bailouts import InsertBailOuts as InsertBailOuts
from rekindle.passes.insert_guards import InsertGuards as InsertGuards
from rekindle.passes.insert_profiling import InsertProfiling as InsertProfiling
from rekindle.passes.loop_invariant_motion import LoopInvariantMotion as LoopInvariantMotion
from rekindle.passes.loop_peeling import LoopPeeling as LoopPeeling
from rekindle.passes.loop_unrolling import LoopUnrolling as LoopUnrolling
from rekindle.passes.lower_grad_of import LowerGradOf as LowerGradOf
from rekindle.passes.lower_graph import LowerGraph as LowerGraph
from rekindle.passes.lower_simple_tuples import LowerSimpleTuples as LowerSimpleTuples
from rekindle.passes.normalize_ops import NormalizeOps as NormalizeOps
from rekindle.passes.pack_weights import PackWeights as PackWeights
from rekindle.passes.parallelize import Parallelize as Parallelize
from rekindle.passes.pass_manager import Pass as Pass, PassManager as PassManager, run_passes as run_passes
from rekindle.passes.peephole import Peephole as Peephole
from rekindle.passes.remove_dropout import RemoveDropout as RemoveDropout
from rekindle.passes.remove_expands import RemoveExpands as RemoveExpands
from rekindle.passes.remove_mutation import RemoveMutation as RemoveMutation
from rekindle.passes.specialize_autograd_zero import SpecializeAutogradZero as SpecializeAutogradZero
from rekindle.passes.type_refinement import TypeRefinement as TypeRefinement

CLEANUP_AFTER_EMISSION: tuple[Pass, ...] = (
    CanonicalizeModifiedLoops(),
    NormalizeOps(),
    LowerSimpleTuples(),
    ConstantPropagation(),
    ConstantPooling(latest_first=True),
    CanonicalizeOutputs(),
    AnnotateWarns(),
)
"""What runs on the graph of a function right after it is in SSA form."""

CLEANUP_OF_TRIED: tuple[Pass, ...] = (
    CanonicalizeModifiedLoops(),
    NormalizeOps(),
    ConstantPooling(latest_first=True),
    AnnotateWarns(),
)
"""The same for what a ``try`` runs: what may raise stays, though nobody uses what it gives."""
