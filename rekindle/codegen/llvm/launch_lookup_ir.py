"""LLVM IR that finds the launch which fits the arguments of a call.

It reads these structures, which Python makes; each field is a word of 64 bits::

    site     inputs, kinds*, fallback*, most pointers, names of forward_ad*, launches, launch*[launches]
    launch   kernel*, numbers*, layout[inputs] *, outputs, layout[outputs] *, parameters, count of numbers, formula*,
             name*
    formula  words, constants, constant[constants] *, steps, (step, a, b)[steps] *, result[count of numbers] *

``kinds`` has one word an input: 1 for a Tensor, 0 for a number, else the address of the object that it has to be. A
layout is as :mod:`rekindle.codegen.llvm.tensor_boxing_ir` has it; those of outputs have their sizes and strides among
the numbers of the launch, which are its parameters and then, for each output, these. A formula is one of
:mod:`rekindle.codegen.symbolic_sizes`. A launch that has one can be adapted to other sizes: they are written to its
inputs, and the derived numbers to its numbers. The name is that of its events (:mod:`rekindle.ir.profiling`).
"""

from __future__ import annotations

from typing import Final

_TEXT: Final = """
%Site = type {{ i64, ptr, ptr, i64, ptr, i64, [{most_launches} x ptr] }}
%Launch = type {{ ptr, ptr, ptr, i64, ptr, i64, i64, ptr, ptr }}
%Formula = type {{ i64, i64, ptr, i64, ptr, ptr }}
%Step = type {{ i64, i64, i64 }}

define internal i1 @equal_words(ptr %a, ptr %b, i64 %count) {{
start:
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %same]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %compare, label %yes
compare:
  %pa = getelementptr i64, ptr %a, i64 %i
  %pb = getelementptr i64, ptr %b, i64 %i
  %va = load i64, ptr %pa
  %vb = load i64, ptr %pb
  %equal = icmp eq i64 %va, %vb
  br i1 %equal, label %same, label %no
same:
  %next = add i64 %i, 1
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}}

define internal i1 @launch_fits(ptr %launch, ptr %layouts, i64 %inputs) {{
start:
  %wanted_at = getelementptr %Launch, ptr %launch, i64 0, i32 2
  %wanted = load ptr, ptr %wanted_at
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %same_strides]
  %more = icmp slt i64 %i, %inputs
  br i1 %more, label %compare, label %yes
compare:
  %w = getelementptr %Layout, ptr %wanted, i64 %i
  %g = getelementptr %Layout, ptr %layouts, i64 %i
  %same_kind = call i1 @equal_words(ptr %w, ptr %g, i64 2)
  br i1 %same_kind, label %sizes, label %no
sizes:
  %rank_at = getelementptr %Layout, ptr %g, i64 0, i32 1
  %rank = load i64, ptr %rank_at
  %ws_at = getelementptr %Layout, ptr %w, i64 0, i32 2
  %gs_at = getelementptr %Layout, ptr %g, i64 0, i32 2
  %ws = load ptr, ptr %ws_at
  %gs = load ptr, ptr %gs_at
  %equal_sizes = call i1 @equal_words(ptr %ws, ptr %gs, i64 %rank)
  br i1 %equal_sizes, label %strides, label %no
strides:
  %wt_at = getelementptr %Layout, ptr %w, i64 0, i32 3
  %gt_at = getelementptr %Layout, ptr %g, i64 0, i32 3
  %wt = load ptr, ptr %wt_at
  %gt = load ptr, ptr %gt_at
  %equal_strides = call i1 @equal_words(ptr %wt, ptr %gt, i64 %rank)
  br i1 %equal_strides, label %same_strides, label %no
same_strides:
  %next = add i64 %i, 1
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}}

define internal void @copy_words(ptr %to, ptr %from, i64 %count) {{
start:
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %copy]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %copy, label %end
copy:
  %source = getelementptr i64, ptr %from, i64 %i
  %target = getelementptr i64, ptr %to, i64 %i
  %word = load i64, ptr %source
  store i64 %word, ptr %target
  %next = add i64 %i, 1
  br label %loop
end:
  ret void
}}

; Copy the sizes and strides of %layouts, one after the other, to %words; with %keep, copy %words to the sizes and
; strides of the launch's own inputs instead. Return the number of words.
define internal i64 @given_words(ptr %launch, ptr %layouts, i64 %inputs, ptr %words, i1 %keep) {{
start:
  %own_at = getelementptr %Launch, ptr %launch, i64 0, i32 2
  %own = load ptr, ptr %own_at
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %taken]
  %w = phi i64 [0, %start], [%w_next, %taken]
  %more = icmp slt i64 %i, %inputs
  br i1 %more, label %take, label %end
take:
  %o = getelementptr %Layout, ptr %own, i64 %i
  %g = getelementptr %Layout, ptr %layouts, i64 %i
  %rank_at = getelementptr %Layout, ptr %g, i64 0, i32 1
  %rank = load i64, ptr %rank_at
  %w_middle = add i64 %w, %rank
  %w_next = add i64 %w_middle, %rank
  %next = add i64 %i, 1
  %first = getelementptr i64, ptr %words, i64 %w
  %second = getelementptr i64, ptr %words, i64 %w_middle
  br i1 %keep, label %write, label %read
read:
  %gs_at = getelementptr %Layout, ptr %g, i64 0, i32 2
  %gt_at = getelementptr %Layout, ptr %g, i64 0, i32 3
  %gs = load ptr, ptr %gs_at
  %gt = load ptr, ptr %gt_at
  call void @copy_words(ptr %first, ptr %gs, i64 %rank)
  call void @copy_words(ptr %second, ptr %gt, i64 %rank)
  br label %taken
write:
  %os_at = getelementptr %Layout, ptr %o, i64 0, i32 2
  %ot_at = getelementptr %Layout, ptr %o, i64 0, i32 3
  %os = load ptr, ptr %os_at
  %ot = load ptr, ptr %ot_at
  call void @copy_words(ptr %os, ptr %first, i64 %rank)
  call void @copy_words(ptr %ot, ptr %second, i64 %rank)
  br label %taken
taken:
  br label %loop
end:
  ret i64 %w
}}

; Run the steps of a formula on %words, of which %made are there already. Return whether all guards hold.
define internal i1 @follow(ptr %formula, ptr %words, i64 %made) {{
start:
  %count_at = getelementptr %Formula, ptr %formula, i64 0, i32 3
  %steps_at = getelementptr %Formula, ptr %formula, i64 0, i32 4
  %count = load i64, ptr %count_at
  %steps = load ptr, ptr %steps_at
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next_computed, %computed], [%next_checked, %checked]
  %w = phi i64 [%made, %start], [%w_next, %computed], [%w, %checked]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %step, label %yes
step:
  %kind_at = getelementptr %Step, ptr %steps, i64 %i, i32 0
  %a_at = getelementptr %Step, ptr %steps, i64 %i, i32 1
  %b_at = getelementptr %Step, ptr %steps, i64 %i, i32 2
  %kind = load i64, ptr %kind_at
  %a_number = load i64, ptr %a_at
  %b_number = load i64, ptr %b_at
  %a_word = getelementptr i64, ptr %words, i64 %a_number
  %b_word = getelementptr i64, ptr %words, i64 %b_number
  %a = load i64, ptr %a_word
  %b = load i64, ptr %b_word
  switch i64 %kind, label %no [
    i64 0, label %add
    i64 1, label %subtract
    i64 2, label %multiply
    i64 3, label %divide
    i64 4, label %equal
    i64 5, label %different
    i64 6, label %less
    i64 7, label %not_less
  ]
add:
  %sum = add i64 %a, %b
  br label %computed
subtract:
  %difference = sub i64 %a, %b
  br label %computed
multiply:
  %product = mul i64 %a, %b
  br label %computed
divide:
  %quotient = sdiv i64 %a, %b
  %rest = srem i64 %a, %b
  %negative = icmp slt i64 %rest, 0
  %less_one = sext i1 %negative to i64
  %rounded = add i64 %quotient, %less_one
  br label %computed
computed:
  %result = phi i64 [%sum, %add], [%difference, %subtract], [%product, %multiply], [%rounded, %divide]
  %to = getelementptr i64, ptr %words, i64 %w
  store i64 %result, ptr %to
  %w_next = add i64 %w, 1
  %next_computed = add i64 %i, 1
  br label %loop
equal:
  %is_equal = icmp eq i64 %a, %b
  br label %checked_one
different:
  %is_different = icmp ne i64 %a, %b
  br label %checked_one
less:
  %is_less = icmp slt i64 %a, %b
  br label %checked_one
not_less:
  %is_not_less = icmp sge i64 %a, %b
  br label %checked_one
checked_one:
  %holds = phi i1 [%is_equal, %equal], [%is_different, %different], [%is_less, %less], [%is_not_less, %not_less]
  br i1 %holds, label %checked, label %no
checked:
  %next_checked = add i64 %i, 1
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}}

; Adapt a launch to the sizes and strides of %layouts, if it has a formula whose guards hold for them. Return whether
; that was done.
define internal i1 @turn(ptr %launch, ptr %layouts, i64 %inputs) {{
start:
  %formula_at = getelementptr %Launch, ptr %launch, i64 0, i32 7
  %formula = load ptr, ptr %formula_at
  %none = icmp eq ptr %formula, null
  br i1 %none, label %no, label %kinds
kinds:
  %wanted_at = getelementptr %Launch, ptr %launch, i64 0, i32 2
  %wanted = load ptr, ptr %wanted_at
  br label %loop
loop:
  %i = phi i64 [0, %kinds], [%next, %same]
  %more = icmp slt i64 %i, %inputs
  br i1 %more, label %compare, label %ask
compare:
  %w = getelementptr %Layout, ptr %wanted, i64 %i
  %g = getelementptr %Layout, ptr %layouts, i64 %i
  %same_kind = call i1 @equal_words(ptr %w, ptr %g, i64 2)
  br i1 %same_kind, label %same, label %no
same:
  %next = add i64 %i, 1
  br label %loop
ask:
  %count = load i64, ptr %formula
  %words = alloca i64, i64 %count
  %given = call i64 @given_words(ptr %launch, ptr %layouts, i64 %inputs, ptr %words, i1 false)
  %constants_at = getelementptr %Formula, ptr %formula, i64 0, i32 1
  %constants = load i64, ptr %constants_at
  %constant_at = getelementptr %Formula, ptr %formula, i64 0, i32 2
  %constant = load ptr, ptr %constant_at
  %behind = getelementptr i64, ptr %words, i64 %given
  call void @copy_words(ptr %behind, ptr %constant, i64 %constants)
  %made = add i64 %given, %constants
  %holds = call i1 @follow(ptr %formula, ptr %words, i64 %made)
  br i1 %holds, label %write, label %no
write:
  %g2 = call i64 @given_words(ptr %launch, ptr %layouts, i64 %inputs, ptr %words, i1 true)
  %numbers_at = getelementptr %Launch, ptr %launch, i64 0, i32 1
  %numbers = load ptr, ptr %numbers_at
  %total_at = getelementptr %Launch, ptr %launch, i64 0, i32 6
  %total = load i64, ptr %total_at
  %results_at = getelementptr %Formula, ptr %formula, i64 0, i32 5
  %results = load ptr, ptr %results_at
  br label %gather
gather:
  %r = phi i64 [0, %write], [%r_next, %gathered]
  %r_more = icmp slt i64 %r, %total
  br i1 %r_more, label %gathered, label %yes
gathered:
  %which_at = getelementptr i64, ptr %results, i64 %r
  %which = load i64, ptr %which_at
  %from = getelementptr i64, ptr %words, i64 %which
  %word = load i64, ptr %from
  %into = getelementptr i64, ptr %numbers, i64 %r
  store i64 %word, ptr %into
  %r_next = add i64 %r, 1
  br label %gather
yes:
  ret i1 true
no:
  ret i1 false
}}

; Return the first launch that fits, or else the first that can be adapted; null if there is none. The launch exchanges
; its place with the first one of the site.
define internal ptr @find_launch(ptr %site, ptr %layouts, i64 %inputs) {{
start:
  %launches_at = getelementptr %Site, ptr %site, i64 0, i32 5
  %launches = load i64, ptr %launches_at
  %first_at = getelementptr %Site, ptr %site, i64 0, i32 6
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %other]
  %more = icmp slt i64 %i, %launches
  br i1 %more, label %try, label %turning
try:
  %this_at = getelementptr ptr, ptr %first_at, i64 %i
  %this = load ptr, ptr %this_at
  %good = call i1 @launch_fits(ptr %this, ptr %layouts, i64 %inputs)
  br i1 %good, label %found, label %other
other:
  %next = add i64 %i, 1
  br label %loop
turning:
  %t = phi i64 [0, %loop], [%t_next, %t_other]
  %t_more = icmp slt i64 %t, %launches
  br i1 %t_more, label %t_try, label %no
t_try:
  %t_this_at = getelementptr ptr, ptr %first_at, i64 %t
  %t_this = load ptr, ptr %t_this_at
  %t_good = call i1 @turn(ptr %t_this, ptr %layouts, i64 %inputs)
  br i1 %t_good, label %found, label %t_other
t_other:
  %t_next = add i64 %t, 1
  br label %turning
found:
  %chosen_at = phi ptr [%this_at, %try], [%t_this_at, %t_try]
  %chosen = phi ptr [%this, %try], [%t_this, %t_try]
  %first = load ptr, ptr %first_at
  store ptr %first, ptr %chosen_at
  store ptr %chosen, ptr %first_at
  ret ptr %chosen
no:
  ret ptr null
}}
"""


def launch_text(most_launches: int) -> str:
    """Return the LLVM IR of ``find_launch``, and of the structures that it reads."""
    return _TEXT.format(most_launches=most_launches)
