"""LLVM IR of lists of numbers. Strings of several characters are lists of code points, of the kind 6.

A list has its elements as words of 64 bits; those of a list of lists are the addresses of lists. A list may represent a
foreign object, its ``origin``: one of Python's. It has no elements at first: they are taken out of the object one by
one until that has happened often enough, or until something is written; then all are. ``low`` is the first place that
was written to since, and elements from ``first length`` on were appended.

Memory comes from an arena, which begins on the stack, and is freed as a whole. Functions that may run out of it, or
that find elements of other types, return 0 or null: the plan then runs the region.

Nothing here is CPython's. What a region needs of the representation of foreign objects are three functions:

- ``i1 @take_element(ptr arena, ptr origin, i64 index, i64 kind, ptr word)`` stores an element as a word;
- ``void @release(ptr origin)`` ends the use of an object;
- ``i1 @check_interrupts()`` returns false when the loop that calls it has to stop.

:mod:`rekindle.codegen.native.boxing_ir` has them for Python's objects. A program without Python never has an origin.
"""

from __future__ import annotations

from typing import Final

MAX_MEMORY: Final = 1 << 29
"""Maximum size in bytes of a region's lists; beyond it, the plan takes over, which frees unused lists."""

TEXT: Final = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; blocks, cursor, limit, bytes in use, first list with an origin; table of those, its capacity, their count
%Arena = type {{ ptr, ptr, ptr, i64, ptr, ptr, i64, i64 }}
; length, capacity, elements, origin, next with an origin, kind, taken one by one, low, first length
%List = type {{ i64, i64, ptr, ptr, ptr, i64, i64, i64, i64 }}

define internal ptr @allocate(ptr %arena, i64 %bytes) {{
  %cursor_at = getelementptr %Arena, ptr %arena, i64 0, i32 1
  %limit_at = getelementptr %Arena, ptr %arena, i64 0, i32 2
  %cursor = load ptr, ptr %cursor_at
  %limit = load ptr, ptr %limit_at
  %start = ptrtoint ptr %cursor to i64
  %end = ptrtoint ptr %limit to i64
  %room = sub i64 %end, %start
  %fits = icmp ule i64 %bytes, %room
  br i1 %fits, label %take, label %grow
take:
  %after = getelementptr i8, ptr %cursor, i64 %bytes
  store ptr %after, ptr %cursor_at
  ret ptr %cursor
grow:
  %result = call ptr @allocate_block(ptr %arena, i64 %bytes)
  ret ptr %result
}}

define internal ptr @allocate_block(ptr %arena, i64 %bytes) noinline {{
  %used_at = getelementptr %Arena, ptr %arena, i64 0, i32 3
  %used = load i64, ptr %used_at
  %large = icmp ugt i64 %bytes, %used
  %wanted = select i1 %large, i64 %bytes, i64 %used
  %block = add i64 %wanted, 65536
  %sum = add i64 %used, %block
  %too_much = icmp ugt i64 %sum, {most_memory}
  br i1 %too_much, label %no, label %get
get:
  store i64 %sum, ptr %used_at
  %memory = call ptr @malloc(i64 %block)
  %failed = icmp eq ptr %memory, null
  br i1 %failed, label %no, label %link
link:
  %before = load ptr, ptr %arena
  store ptr %before, ptr %memory
  store ptr %memory, ptr %arena
  %first = getelementptr i8, ptr %memory, i64 16
  %limit = getelementptr i8, ptr %memory, i64 %block
  %after = getelementptr i8, ptr %first, i64 %bytes
  %cursor_at = getelementptr %Arena, ptr %arena, i64 0, i32 1
  %limit_at = getelementptr %Arena, ptr %arena, i64 0, i32 2
  store ptr %after, ptr %cursor_at
  store ptr %limit, ptr %limit_at
  ret ptr %first
no:
  ret ptr null
}}

; Origins are released too: another thread may have removed rows from the list that held them.
define internal void @free_arena(ptr %arena) {{
start:
  %inputs_at = getelementptr %Arena, ptr %arena, i64 0, i32 4
  %first_list = load ptr, ptr %inputs_at
  br label %lists
lists:
  %list = phi ptr [%first_list, %start], [%next_list, %drop]
  %no_more = icmp eq ptr %list, null
  br i1 %no_more, label %blocks, label %drop
drop:
  %origin_at = getelementptr %List, ptr %list, i64 0, i32 3
  %origin = load ptr, ptr %origin_at
  call void @release(ptr %origin)
  %next_at = getelementptr %List, ptr %list, i64 0, i32 4
  %next_list = load ptr, ptr %next_at
  br label %lists
blocks:
  %first = load ptr, ptr %arena
  br label %loop
loop:
  %block = phi ptr [%first, %blocks], [%next, %release]
  %done = icmp eq ptr %block, null
  br i1 %done, label %end, label %release
release:
  %next = load ptr, ptr %block
  call void @free(ptr %block)
  br label %loop
end:
  ret void
}}

define internal dereferenceable_or_null(72) ptr @list_new(ptr %arena, i64 %capacity, i64 %kind) {{
  %bytes = shl i64 %capacity, 3
  %all = add i64 %bytes, 72
  %list = call ptr @allocate(ptr %arena, i64 %all)
  %failed = icmp eq ptr %list, null
  br i1 %failed, label %no, label %fill
fill:
  %elements = getelementptr i8, ptr %list, i64 72
  %header = insertvalue %List zeroinitializer, i64 %capacity, 1
  %h2 = insertvalue %List %header, ptr %elements, 2
  %h3 = insertvalue %List %h2, i64 %kind, 5
  store %List %h3, ptr %list
  ret ptr %list
no:
  ret ptr null
}}

define internal i1 @list_take_one(ptr %arena, ptr %list, i64 %index, ptr %word) {{
  %origin_at = getelementptr %List, ptr %list, i64 0, i32 3
  %kind_at = getelementptr %List, ptr %list, i64 0, i32 5
  %origin = load ptr, ptr %origin_at
  %kind = load i64, ptr %kind_at
  %good = call i1 @take_element(ptr %arena, ptr %origin, i64 %index, i64 %kind, ptr %word)
  ret i1 %good
}}

; Take all elements out of the origin, with room for some more.
define internal i1 @list_take_all(ptr %arena, ptr %list) noinline {{
start:
  %length = load i64, ptr %list
  %half = ashr i64 %length, 1
  %more_room = add i64 %half, 8
  %capacity = add i64 %length, %more_room
  %bytes = shl i64 %capacity, 3
  %elements = call ptr @allocate(ptr %arena, i64 %bytes)
  %failed = icmp eq ptr %elements, null
  br i1 %failed, label %no, label %loop
loop:
  %i = phi i64 [0, %start], [%next, %taken]
  %more = icmp slt i64 %i, %length
  br i1 %more, label %take, label %done
take:
  %at = getelementptr i64, ptr %elements, i64 %i
  %good = call i1 @list_take_one(ptr %arena, ptr %list, i64 %i, ptr %at)
  br i1 %good, label %taken, label %no
taken:
  %next = add i64 %i, 1
  br label %loop
done:
  %capacity_at = getelementptr %List, ptr %list, i64 0, i32 1
  %elements_at = getelementptr %List, ptr %list, i64 0, i32 2
  store i64 %capacity, ptr %capacity_at
  store ptr %elements, ptr %elements_at
  ret i1 true
no:
  ret i1 false
}}

; An element of a list whose elements are still the origin's.
define internal {{ i64, i1 }} @list_get_slowly(ptr %arena, ptr %list, i64 %index) noinline {{
  %word = alloca i64
  store i64 0, ptr %word
  %taken_at = getelementptr %List, ptr %list, i64 0, i32 6
  %taken = load i64, ptr %taken_at
  %now = add i64 %taken, 1
  store i64 %now, ptr %taken_at
  %good = call i1 @list_take_one(ptr %arena, ptr %list, i64 %index, ptr %word)
  %value = load i64, ptr %word
  %length = load i64, ptr %list
  %often = shl i64 %now, 2
  %enough = icmp sgt i64 %often, %length
  %convert = and i1 %enough, %good
  br i1 %convert, label %all, label %end
all:
  %converted = call i1 @list_take_all(ptr %arena, ptr %list)
  br label %end
end:
  %fine = phi i1 [%good, %0], [%converted, %all]
  %r1 = insertvalue {{ i64, i1 }} poison, i64 %value, 0
  %r2 = insertvalue {{ i64, i1 }} %r1, i1 %fine, 1
  ret {{ i64, i1 }} %r2
}}

; Where an index points to, and whether that is within the list.
define internal {{ i64, i1 }} @list_index(ptr %list, i64 %index) alwaysinline {{
  %length = load i64, ptr %list, !tbaa !5
  %negative = icmp slt i64 %index, 0
  %from_end = add i64 %index, %length
  %place = select i1 %negative, i64 %from_end, i64 %index
  %inside = icmp ult i64 %place, %length
  %r1 = insertvalue {{ i64, i1 }} poison, i64 %place, 0
  %r2 = insertvalue {{ i64, i1 }} %r1, i1 %inside, 1
  ret {{ i64, i1 }} %r2
}}

define internal {{ i64, i1 }} @list_get(ptr %arena, ptr %list, i64 %index) alwaysinline {{
  %found = call {{ i64, i1 }} @list_index(ptr %list, i64 %index)
  %place = extractvalue {{ i64, i1 }} %found, 0
  %inside = extractvalue {{ i64, i1 }} %found, 1
  br i1 %inside, label %look, label %no
look:
  %elements_at = getelementptr %List, ptr %list, i64 0, i32 2
  %elements = load ptr, ptr %elements_at, !tbaa !5
  %here = icmp ne ptr %elements, null
  br i1 %here, label %quick, label %slow, !prof !0
quick:
  %at = getelementptr i64, ptr %elements, i64 %place
  %value = load i64, ptr %at, !tbaa !6
  %r1 = insertvalue {{ i64, i1 }} poison, i64 %value, 0
  %r2 = insertvalue {{ i64, i1 }} %r1, i1 true, 1
  ret {{ i64, i1 }} %r2
slow:
  %s = call {{ i64, i1 }} @list_get_slowly(ptr %arena, ptr %list, i64 %place)
  ret {{ i64, i1 }} %s
no:
  ret {{ i64, i1 }} zeroinitializer
}}

define internal void @list_written(ptr %list, i64 %place) alwaysinline {{
  %low_at = getelementptr %List, ptr %list, i64 0, i32 7
  %low = load i64, ptr %low_at, !tbaa !5
  %lower = icmp slt i64 %place, %low
  br i1 %lower, label %note, label %end
note:
  store i64 %place, ptr %low_at, !tbaa !5
  br label %end
end:
  ret void
}}

define internal i1 @list_set(ptr %arena, ptr %list, i64 %index, i64 %word) alwaysinline {{
  %found = call {{ i64, i1 }} @list_index(ptr %list, i64 %index)
  %place = extractvalue {{ i64, i1 }} %found, 0
  %inside = extractvalue {{ i64, i1 }} %found, 1
  br i1 %inside, label %look, label %no
look:
  %elements_at = getelementptr %List, ptr %list, i64 0, i32 2
  %elements = load ptr, ptr %elements_at, !tbaa !5
  %here = icmp ne ptr %elements, null
  br i1 %here, label %write, label %take, !prof !0
take:
  %taken = call i1 @list_take_all(ptr %arena, ptr %list)
  br i1 %taken, label %again, label %no
again:
  %new_elements = load ptr, ptr %elements_at, !tbaa !5
  br label %write
write:
  %to = phi ptr [%elements, %look], [%new_elements, %again]
  %at = getelementptr i64, ptr %to, i64 %place
  store i64 %word, ptr %at, !tbaa !6
  call void @list_written(ptr %list, i64 %place)
  ret i1 true
no:
  ret i1 false
}}

; The place of an element of a list without an origin, and whether there is one. The header is read first, so that
; loops on the list read it once.
define internal {{ ptr, i1 }} @own_list_place(ptr %list, i64 %index) alwaysinline {{
  %elements_at = getelementptr %List, ptr %list, i64 0, i32 2
  %elements = load ptr, ptr %elements_at, !tbaa !5
  %found = call {{ i64, i1 }} @list_index(ptr %list, i64 %index)
  %place = extractvalue {{ i64, i1 }} %found, 0
  %inside = extractvalue {{ i64, i1 }} %found, 1
  %at = getelementptr i64, ptr %elements, i64 %place
  %r1 = insertvalue {{ ptr, i1 }} poison, ptr %at, 0
  %r2 = insertvalue {{ ptr, i1 }} %r1, i1 %inside, 1
  ret {{ ptr, i1 }} %r2
}}

; Room for one more element.
define internal i1 @list_grow(ptr %arena, ptr %list) noinline {{
start:
  %elements_at = getelementptr %List, ptr %list, i64 0, i32 2
  %capacity_at = getelementptr %List, ptr %list, i64 0, i32 1
  %elements = load ptr, ptr %elements_at
  %here = icmp ne ptr %elements, null
  br i1 %here, label %enlarge, label %take
take:
  %taken = call i1 @list_take_all(ptr %arena, ptr %list)
  ret i1 %taken
enlarge:
  %length = load i64, ptr %list
  %twice = shl i64 %length, 1
  %capacity = add i64 %twice, 8
  %bytes = shl i64 %capacity, 3
  %new = call ptr @allocate(ptr %arena, i64 %bytes)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %no, label %copy
copy:
  %old_bytes = shl i64 %length, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %elements, i64 %old_bytes, i1 false)
  store ptr %new, ptr %elements_at
  store i64 %capacity, ptr %capacity_at
  ret i1 true
no:
  ret i1 false
}}

define internal i1 @list_append(ptr %arena, ptr %list, i64 %word) alwaysinline {{
  %capacity_at = getelementptr %List, ptr %list, i64 0, i32 1
  %length = load i64, ptr %list, !tbaa !5
  %capacity = load i64, ptr %capacity_at, !tbaa !5
  %room = icmp slt i64 %length, %capacity
  br i1 %room, label %put, label %grow, !prof !0
grow:
  %grown = call i1 @list_grow(ptr %arena, ptr %list)
  br i1 %grown, label %put, label %no
put:
  %elements_at = getelementptr %List, ptr %list, i64 0, i32 2
  %elements = load ptr, ptr %elements_at, !tbaa !5
  %at = getelementptr i64, ptr %elements, i64 %length
  store i64 %word, ptr %at, !tbaa !6
  %longer = add i64 %length, 1
  store i64 %longer, ptr %list, !tbaa !5
  ret i1 true
no:
  ret i1 false
}}

; Room for %count more elements of a list without an origin.
define internal i1 @list_reserve(ptr %arena, ptr %list, i64 %count) noinline {{
start:
  %length = load i64, ptr %list
  %capacity_at = getelementptr %List, ptr %list, i64 0, i32 1
  %capacity = load i64, ptr %capacity_at
  %room = sub i64 %capacity, %length
  %enough = icmp sle i64 %count, %room
  br i1 %enough, label %yes, label %check
check:
  %too_many = icmp sgt i64 %count, {most_memory}
  br i1 %too_many, label %no, label %enlarge
enlarge:
  %wanted = add i64 %length, %count
  %twice = shl i64 %length, 1
  %is_more = icmp sgt i64 %twice, %wanted
  %new_capacity = select i1 %is_more, i64 %twice, i64 %wanted
  %bytes = shl i64 %new_capacity, 3
  %new = call ptr @allocate(ptr %arena, i64 %bytes)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %no, label %copy
copy:
  %elements_at = getelementptr %List, ptr %list, i64 0, i32 2
  %elements = load ptr, ptr %elements_at
  %old_bytes = shl i64 %length, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %elements, i64 %old_bytes, i1 false)
  store ptr %new, ptr %elements_at
  store i64 %new_capacity, ptr %capacity_at
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}

; Append to a list that has room.
define internal void @list_push(ptr %list, i64 %word) alwaysinline {{
  %length = load i64, ptr %list, !tbaa !5
  %elements_at = getelementptr %List, ptr %list, i64 0, i32 2
  %elements = load ptr, ptr %elements_at, !tbaa !5
  %at = getelementptr i64, ptr %elements, i64 %length
  store i64 %word, ptr %at, !tbaa !6
  %longer = add i64 %length, 1
  store i64 %longer, ptr %list, !tbaa !5
  ret void
}}

; Take the element at %index away.
define internal {{ i64, i1 }} @list_pop(ptr %arena, ptr %list, i64 %index) {{
start:
  %found = call {{ i64, i1 }} @list_index(ptr %list, i64 %index)
  %place = extractvalue {{ i64, i1 }} %found, 0
  %inside = extractvalue {{ i64, i1 }} %found, 1
  br i1 %inside, label %look, label %no
look:
  %elements_at = getelementptr %List, ptr %list, i64 0, i32 2
  %elements = load ptr, ptr %elements_at
  %here = icmp ne ptr %elements, null
  br i1 %here, label %remove, label %take
take:
  %taken = call i1 @list_take_all(ptr %arena, ptr %list)
  br i1 %taken, label %remove, label %no
remove:
  %from = load ptr, ptr %elements_at
  %at = getelementptr i64, ptr %from, i64 %place
  %value = load i64, ptr %at
  %length = load i64, ptr %list
  %shorter = sub i64 %length, 1
  store i64 %shorter, ptr %list
  call void @list_written(ptr %list, i64 %place)
  br label %loop
loop:
  %i = phi i64 [%place, %remove], [%next, %move]
  %more = icmp slt i64 %i, %shorter
  br i1 %more, label %move, label %done
move:
  %next = add i64 %i, 1
  %source = getelementptr i64, ptr %from, i64 %next
  %target = getelementptr i64, ptr %from, i64 %i
  %moved = load i64, ptr %source
  store i64 %moved, ptr %target
  br label %loop
done:
  %r1 = insertvalue {{ i64, i1 }} poison, i64 %value, 0
  %r2 = insertvalue {{ i64, i1 }} %r1, i1 true, 1
  ret {{ i64, i1 }} %r2
no:
  ret {{ i64, i1 }} zeroinitializer
}}

; A new list of %count times the elements of another one.
define internal dereferenceable_or_null(72) ptr @list_repeat(ptr %arena, ptr %list, i64 %times) {{
start:
  %negative = icmp slt i64 %times, 0
  %count = select i1 %negative, i64 0, i64 %times
  %length = load i64, ptr %list
  %product = call {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64 %count, i64 %length)
  %all = extractvalue {{ i64, i1 }} %product, 0
  %overflow = extractvalue {{ i64, i1 }} %product, 1
  %large = icmp ugt i64 %all, {most_memory}
  %too_large = or i1 %overflow, %large
  br i1 %too_large, label %no, label %check
check:
  %elements_at = getelementptr %List, ptr %list, i64 0, i32 2
  %elements = load ptr, ptr %elements_at
  %here = icmp ne ptr %elements, null
  br i1 %here, label %make, label %take
take:
  %taken = call i1 @list_take_all(ptr %arena, ptr %list)
  br i1 %taken, label %make, label %no
make:
  %from = load ptr, ptr %elements_at
  %kind_at = getelementptr %List, ptr %list, i64 0, i32 5
  %kind = load i64, ptr %kind_at
  %new = call ptr @list_new(ptr %arena, i64 %all, i64 %kind)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %no, label %fill
fill:
  store i64 %all, ptr %new
  %to_at = getelementptr %List, ptr %new, i64 0, i32 2
  %to = load ptr, ptr %to_at
  br label %loop
loop:
  %i = phi i64 [0, %fill], [%i_next, %put]
  %j = phi i64 [0, %fill], [%j_next, %put]
  %more = icmp slt i64 %i, %all
  br i1 %more, label %put, label %done
put:
  %source = getelementptr i64, ptr %from, i64 %j
  %target = getelementptr i64, ptr %to, i64 %i
  %word = load i64, ptr %source
  store i64 %word, ptr %target
  %i_next = add i64 %i, 1
  %j_more = add i64 %j, 1
  %at_end = icmp eq i64 %j_more, %length
  %j_next = select i1 %at_end, i64 0, i64 %j_more
  br label %loop
done:
  ret ptr %new
no:
  ret ptr null
}}

!0 = !{{!"branch_weights", i32 1000, i32 1}}
!1 = !{{!"branch_weights", i32 1, i32 1000}}
; The header of a list and its elements are in different places.
!2 = !{{!"list"}}
!3 = !{{!"head", !2, i64 0}}
!4 = !{{!"element", !2, i64 0}}
!5 = !{{!3, !3, i64 0}}
!6 = !{{!4, !4, i64 0}}
; The header of an element that is a list.
!7 = !{{}}
!8 = !{{i64 72}}
!9 = !{{i64 8}}
"""


def lists_text() -> str:
    """Return the LLVM IR of the functions in this file, for a module that has :func:`take_element` and related
    functions."""
    return TEXT.format(most_memory=MAX_MEMORY)
