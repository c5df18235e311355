//! An allocator for tree-sitter that counts what each thread allocates.
//!
//! Where a text does not parse, tree-sitter follows many interpretations of it at once, and may allocate more than a
//! thousand times the text's size. It has no limit for that, but a parse can be stopped.

use std::{
    alloc::{self, Layout},
    cell::Cell,
    ffi::c_void,
    sync::Once,
};

use tree_sitter::Allocator;

/// Bytes before each allocation, which hold its size; a multiple of any type's alignment.
const HEADER: usize = 16;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

/// Counts the bytes that a thread allocates from now on.
///
/// A tree may be freed by another thread, so only the difference between two moments of one thread is meaningful.
pub(crate) struct Allocated {
    before: usize,
}

impl Allocated {
    pub fn from_now() -> Self {
        Self { before: ALLOCATED.get() }
    }

    /// Bytes allocated since then and not freed.
    pub fn bytes(&self) -> usize {
        // More may have been freed than allocated.
        let bytes = ALLOCATED.get().wrapping_sub(self.before).cast_signed();
        usize::try_from(bytes).unwrap_or(0)
    }
}

/// Installs the allocator. Must be called before tree-sitter allocates anything.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    #[expect(unsafe_code, reason = "the library is C")]
    INSTALLED.call_once(|| {
        let allocator =
            Allocator { malloc: allocate, calloc: allocate_zeroed, realloc: reallocate, free };
        // SAFETY: the functions behave like those of C, and nothing was allocated with others before.
        unsafe { tree_sitter::set_allocator(Some(allocator)) };
    });
}

fn layout(size: usize) -> Layout {
    let size = size.checked_add(HEADER).and_then(|size| Layout::from_size_align(size, HEADER).ok());
    size.expect("no text needs so much")
}

fn count_change(before: usize, after: usize) {
    ALLOCATED.set(ALLOCATED.get().wrapping_sub(before).wrapping_add(after));
}

/// Writes the header of an allocation. Returns a pointer to the bytes after it.
#[expect(unsafe_code, reason = "memory of C")]
unsafe fn begin(start: *mut u8, size: usize) -> *mut c_void {
    if start.is_null() {
        alloc::handle_alloc_error(layout(size));
    }
    count_change(0, size);
    // SAFETY: the header is a part of the allocation.
    unsafe {
        start.cast::<usize>().write_unaligned(size);
        start.add(HEADER).cast()
    }
}

#[expect(unsafe_code, reason = "the library is C")]
unsafe extern "C" fn allocate(size: usize) -> *mut c_void {
    // SAFETY: the size is not zero, since it includes the header.
    unsafe { begin(alloc::alloc(layout(size)), size) }
}

#[expect(unsafe_code, reason = "the library is C")]
unsafe extern "C" fn allocate_zeroed(count: usize, size: usize) -> *mut c_void {
    let size = count.saturating_mul(size);
    // SAFETY: the size is not zero, since it includes the header.
    unsafe { begin(alloc::alloc_zeroed(layout(size)), size) }
}

#[expect(unsafe_code, reason = "the library is C")]
unsafe extern "C" fn reallocate(at: *mut c_void, size: usize) -> *mut c_void {
    if at.is_null() {
        // SAFETY: as in C, a null pointer asks for a new allocation.
        return unsafe { allocate(size) };
    }
    // SAFETY: tree-sitter returns a pointer that it was given, and a header is before it.
    unsafe {
        let (start, before) = header(at);
        count_change(before, 0);
        begin(alloc::realloc(start, layout(before), layout(size).size()), size)
    }
}

#[expect(unsafe_code, reason = "the library is C")]
unsafe extern "C" fn free(at: *mut c_void) {
    if !at.is_null() {
        // SAFETY: tree-sitter returns a pointer that it was given, and a header is before it.
        unsafe {
            let (start, size) = header(at);
            count_change(size, 0);
            alloc::dealloc(start, layout(size));
        }
    }
}

/// Returns the start of an allocation, and its size without the header.
#[expect(unsafe_code, reason = "memory of C")]
unsafe fn header(at: *mut c_void) -> (*mut u8, usize) {
    // SAFETY: `begin` wrote it there.
    unsafe {
        let start = at.cast::<u8>().sub(HEADER);
        (start, start.cast::<usize>().read_unaligned())
    }
}
