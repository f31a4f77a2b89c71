"""Run-time library of strings in LLVM IR.

A string is one word. That of a single character is its code point, shifted by one, with the lowest bit set; it needs no
memory, and two are equal as words. Any other came from Python: the word is the address of its list
(:mod:`rekindle.codegen.native.list_runtime_ir`), whose elements are code points, taken out of Python's string as they
are needed.
"""

from __future__ import annotations

from typing import Final

STRING_KIND: Final = 6
"""The kind of a list that represents a string."""

_TEXT: Final = """
declare i64 @PyUnicode_GetLength(ptr)
declare i32 @PyUnicode_ReadChar(ptr, i64)
declare i32 @PyUnicode_Compare(ptr, ptr)
declare ptr @PyUnicode_FromOrdinal(i32)
@PyUnicode_Type = external global i8

define internal i1 @is_character(ptr %string) alwaysinline {{
  %word = ptrtoint ptr %string to i64
  %bit = trunc i64 %word to i1
  ret i1 %bit
}}

define internal ptr @character(i64 %code) alwaysinline {{
  %shifted = shl i64 %code, 1
  %word = or i64 %shifted, 1
  %string = inttoptr i64 %word to ptr
  ret ptr %string
}}

define internal i64 @code_point(ptr %character) alwaysinline {{
  %word = ptrtoint ptr %character to i64
  %code = lshr i64 %word, 1
  ret i64 %code
}}

; A string of Python's. Null: it is none, or there is no memory.
define internal ptr @string_of(ptr %arena, ptr %object) noinline {{
  %class_at = getelementptr i8, ptr %object, i64 {class_offset}
  %class = load ptr, ptr %class_at
  %is_string = icmp eq ptr %class, @PyUnicode_Type
  br i1 %is_string, label %measure, label %no
measure:
  %length = call i64 @PyUnicode_GetLength(ptr %object)
  %single = icmp eq i64 %length, 1
  br i1 %single, label %one, label %several
one:
  %code = call i32 @PyUnicode_ReadChar(ptr %object, i64 0)
  %wide = zext i32 %code to i64
  %character = call ptr @character(i64 %wide)
  ret ptr %character
several:
  %new = call ptr @allocate(ptr %arena, i64 72)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %no, label %fill
fill:
  %h1 = insertvalue %List zeroinitializer, i64 %length, 0
  %h2 = insertvalue %List %h1, ptr %object, 3
  %h3 = insertvalue %List %h2, i64 {kind}, 5
  store %List %h3, ptr %new
  ret ptr %new
no:
  ret ptr null
}}

define internal i64 @string_length(ptr %string) alwaysinline {{
  %single = call i1 @is_character(ptr %string)
  br i1 %single, label %one, label %several
one:
  ret i64 1
several:
  %length = load i64, ptr %string, !tbaa !5
  ret i64 %length
}}

; The word of the character at %index, and whether there is one.
define internal {{ i64, i1 }} @string_get(ptr %arena, ptr %string, i64 %index) alwaysinline {{
  %single = call i1 @is_character(ptr %string)
  br i1 %single, label %one, label %several
one:
  %own = ptrtoint ptr %string to i64
  %from_end = add i64 %index, 1
  %inside = icmp ule i64 %from_end, 1
  %o1 = insertvalue {{ i64, i1 }} poison, i64 %own, 0
  %o2 = insertvalue {{ i64, i1 }} %o1, i1 %inside, 1
  ret {{ i64, i1 }} %o2
several:
  %found = call {{ i64, i1 }} @list_get(ptr %arena, ptr %string, i64 %index)
  %code = extractvalue {{ i64, i1 }} %found, 0
  %good = extractvalue {{ i64, i1 }} %found, 1
  %shifted = shl i64 %code, 1
  %word = or i64 %shifted, 1
  %s1 = insertvalue {{ i64, i1 }} poison, i64 %word, 0
  %s2 = insertvalue {{ i64, i1 }} %s1, i1 %good, 1
  ret {{ i64, i1 }} %s2
}}

define internal i1 @string_equal(ptr %a, ptr %b) alwaysinline {{
  %a_single = call i1 @is_character(ptr %a)
  %b_single = call i1 @is_character(ptr %b)
  %single = or i1 %a_single, %b_single
  br i1 %single, label %words, label %several
words:
  %same = icmp eq ptr %a, %b
  ret i1 %same
several:
  %order = call i32 @string_compare(ptr %a, ptr %b)
  %equal = icmp eq i32 %order, 0
  ret i1 %equal
}}

; Compare two strings other than single characters: below 0, 0 or above 0, in Python's order.
define internal i32 @string_compare(ptr %a, ptr %b) noinline {{
  %a_at = getelementptr %List, ptr %a, i64 0, i32 3
  %b_at = getelementptr %List, ptr %b, i64 0, i32 3
  %a_object = load ptr, ptr %a_at
  %b_object = load ptr, ptr %b_at
  %order = call i32 @PyUnicode_Compare(ptr %a_object, ptr %b_object)
  ret i32 %order
}}

; Python's string. None if no path defined it: it is never read.
define internal ptr @string_object(ptr %string) noinline {{
  %undefined = icmp eq ptr %string, null
  br i1 %undefined, label %nothing, label %look
nothing:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
look:
  %single = call i1 @is_character(ptr %string)
  br i1 %single, label %one, label %several
one:
  %code = call i64 @code_point(ptr %string)
  %narrow = trunc i64 %code to i32
  %made = call ptr @PyUnicode_FromOrdinal(i32 %narrow)
  ret ptr %made
several:
  %origin_at = getelementptr %List, ptr %string, i64 0, i32 3
  %origin = load ptr, ptr %origin_at
  call void @Py_IncRef(ptr %origin)
  ret ptr %origin
}}
"""


def strings_text(class_offset: int) -> str:
    """Return the LLVM IR of the functions in this file, for a module with those for lists. ``class_offset`` is the
    offset of the class in a Python object, in bytes."""
    return _TEXT.format(class_offset=class_offset, kind=STRING_KIND)
