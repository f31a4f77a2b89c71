"""Passes: transformations that change a graph in place, one a file."""

from rekindle.passes.canonicalization.annotate_warns import AnnotateWarns as AnnotateWarns
from rekindle.passes.canonicalization.canonicalize_ops import CanonicalizeOps as CanonicalizeOps
from rekindle.passes.canonicalization.canonicalize_outputs import CanonicalizeOutputs as CanonicalizeOutputs
from rekindle.passes.canonicalization.decompose_ops import DecomposeOps as DecomposeOps
from rekindle.passes.canonicalization.inlining import Inlining as Inlining, inline as inline
from rekindle.passes.canonicalization.lower_graph import LowerGraph as LowerGraph
from rekindle.passes.canonicalization.lower_simple_tuples import LowerSimpleTuples as LowerSimpleTuples
from rekindle.passes.canonicalization.normalize_ops import NormalizeOps as NormalizeOps
from rekindle.passes.canonicalization.unwrap_scalar_operands import UnwrapScalarOperands as UnwrapScalarOperands
from rekindle.passes.frozen_modules.fold_arithmetic import FoldArithmetic as FoldArithmetic
from rekindle.passes.frozen_modules.fold_batch_norm import FoldBatchNorm as FoldBatchNorm
from rekindle.passes.frozen_modules.freezing import Freezing as Freezing
from rekindle.passes.frozen_modules.lay_out_factors import LayOutFactors as LayOutFactors
from rekindle.passes.frozen_modules.pack_weights import PackWeights as PackWeights
from rekindle.passes.frozen_modules.remove_dropout import RemoveDropout as RemoveDropout
from rekindle.passes.frozen_modules.round_weights import RoundWeights as RoundWeights
from rekindle.passes.frozen_modules.select_attention import SelectAttention as SelectAttention
from rekindle.passes.gradients.lower_grad_of import LowerGradOf as LowerGradOf
from rekindle.passes.gradients.overwrite_operands import OverwriteOperands as OverwriteOperands
from rekindle.passes.gradients.specialize_autograd_zero import SpecializeAutogradZero as SpecializeAutogradZero
from rekindle.passes.loops.batch_projections import BatchProjections as BatchProjections
from rekindle.passes.loops.canonicalize_modified_loops import CanonicalizeModifiedLoops as CanonicalizeModifiedLoops
from rekindle.passes.loops.loop_invariant_motion import LoopInvariantMotion as LoopInvariantMotion
from rekindle.passes.loops.loop_peeling import LoopPeeling as LoopPeeling
from rekindle.passes.loops.loop_unrolling import LoopUnrolling as LoopUnrolling
from rekindle.passes.loops.scalar_replacement import ScalarReplacement as ScalarReplacement
from rekindle.passes.loops.simplify_carried_values import SimplifyCarriedValues as SimplifyCarriedValues
from rekindle.passes.parallelism.batch_mm import BatchMM as BatchMM
from rekindle.passes.parallelism.parallelize import Parallelize as Parallelize
from rekindle.passes.pass_manager import Pass as Pass, PassManager as PassManager, run_passes as run_passes
from rekindle.passes.simplification.common_subexpression_elimination import (
    CommonSubexpressionElimination as CommonSubexpressionElimination,
)
from rekindle.passes.simplification.constant_pooling import ConstantPooling as ConstantPooling
from rekindle.passes.simplification.constant_propagation import ConstantPropagation as ConstantPropagation
from rekindle.passes.simplification.dead_code_elimination import DeadCodeElimination as DeadCodeElimination
from rekindle.passes.simplification.fill_elements import FillElements as FillElements
from rekindle.passes.simplification.fold_constant_tensors import FoldConstantTensors as FoldConstantTensors
from rekindle.passes.simplification.forward_rank_queries import ForwardRankQueries as ForwardRankQueries
from rekindle.passes.simplification.hoist_from_if import HoistFromIf as HoistFromIf
from rekindle.passes.simplification.partial_evaluation import PartialEvaluation as PartialEvaluation
from rekindle.passes.simplification.peephole import Peephole as Peephole
from rekindle.passes.simplification.remove_expands import RemoveExpands as RemoveExpands
from rekindle.passes.simplification.remove_mutation import RemoveMutation as RemoveMutation
from rekindle.passes.simplification.type_refinement import TypeRefinement as TypeRefinement
from rekindle.passes.speculation.eliminate_guards import EliminateGuards as EliminateGuards
from rekindle.passes.speculation.insert_bailouts import InsertBailOuts as InsertBailOuts
from rekindle.passes.speculation.insert_guards import InsertGuards as InsertGuards
from rekindle.passes.speculation.insert_profiling import InsertProfiling as InsertProfiling
