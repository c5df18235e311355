//! The tables of a language, as the tree-sitter library declares them.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::slice;

/// Given what a text is read with, and a state.
pub type Lex = unsafe extern "C" fn(*mut c_void, u16) -> bool;

/// What is `None` is not in a language of this age.
#[repr(C)]
struct Language {
    abi_version: u32,
    symbol_count: u32,
    alias_count: u32,
    token_count: u32,
    external_token_count: u32,
    state_count: u32,
    large_state_count: u32,
    production_id_count: u32,
    field_count: u32,
    max_alias_sequence_length: u16,
    parse_table: *const u16,
    small_parse_table: *const u16,
    small_parse_table_map: *const u32,
    parse_actions: *const [u8; 8],
    symbol_names: *const *const c_char,
    field_names: *const *const c_char,
    field_map_slices: *const [u16; 2],
    field_map_entries: *const [u8; 4],
    symbol_metadata: *const [u8; 3],
    public_symbol_map: *const u16,
    alias_map: *const u16,
    alias_sequences: *const u16,
    lex_modes: *const u16,
    lex: Option<Lex>,
    keyword_lex: Option<Lex>,
    keyword_capture_token: u16,
    scanner_states: *const u8,
    scanner_symbol_map: *const u16,
    scanner_functions: [*const c_void; 5],
    primary_state_ids: *const u16,
    // What follows is only there from version 15 on.
    name: *const c_char,
    reserved_words: *const u16,
    max_reserved_word_set_size: u16,
    supertype_count: u32,
    supertype_symbols: *const u16,
    supertype_map_slices: *const [u16; 2],
    supertype_map_entries: *const u16,
    metadata: [u8; 3],
}

/// What is not there in an old version is 0.
#[expect(unsafe_code, reason = "it is what C sees")]
fn copy(language: *const c_void) -> Language {
    // SAFETY: a language is there, and all before the name is in any version.
    unsafe {
        let is_old = language.cast::<u32>().read() < 15;
        let mut copy = std::mem::zeroed::<Language>();
        let size =
            if is_old { std::mem::offset_of!(Language, name) } else { size_of::<Language>() };
        ptr::copy_nonoverlapping(language.cast::<u8>(), (&raw mut copy).cast(), size);
        copy
    }
}

/// The functions that find its tokens: all, and words only.
pub fn lexers(language: *const c_void) -> [Option<Lex>; 2] {
    let it = copy(language);
    [it.lex, it.keyword_lex]
}

/// Every table there is, as bytes; how long those are of which no number tells, the others do.
#[expect(unsafe_code, reason = "it is what C sees")]
fn tables(language: *const c_void) -> Vec<(&'static str, Vec<u8>)> {
    let it = copy(language);
    let is_old = it.abi_version < 15;
    // SAFETY: what it has is as long as it says.
    unsafe {
        let count = |number: u32| number as usize;
        let symbols = count(it.symbol_count + it.alias_count);
        let states = count(it.state_count);
        let small = states - count(it.large_state_count);
        let productions = count(it.production_id_count);
        let map = bytes(it.small_parse_table_map, small);
        let small_table = small_table(&it, small);
        let parse_table = bytes(it.parse_table, count(it.large_state_count * it.symbol_count));
        let actions = actions(&it, &small_table);
        let slices = ranges(it.field_map_slices, productions);
        let modes = if is_old { 2 } else { 3 };
        let external = count(it.external_token_count);
        let mut tables = vec![
            ("numbers", slice::from_raw_parts((&raw const it).cast::<u8>(), 38).to_vec()),
            ("parse_table", parse_table),
            ("small_parse_table", bytes(small_table.as_ptr(), small_table.len())),
            ("small_parse_table_map", map),
            ("parse_actions", bytes(it.parse_actions, actions)),
            ("symbol_names", names(it.symbol_names, symbols)),
            (
                "field_names",
                names(
                    it.field_names,
                    if it.field_count > 0 { count(it.field_count) + 1 } else { 0 },
                ),
            ),
            ("symbol_metadata", bytes(it.symbol_metadata, symbols)),
            ("public_symbol_map", bytes(it.public_symbol_map, symbols)),
            ("alias_map", alias_map(it.alias_map)),
            (
                "alias_sequences",
                bytes(it.alias_sequences, productions * usize::from(it.max_alias_sequence_length)),
            ),
            ("lex_modes", bytes(it.lex_modes, states * modes)),
            ("scanner_symbol_map", bytes(it.scanner_symbol_map, external)),
            ("primary_state_ids", bytes(it.primary_state_ids, states)),
        ];
        if it.field_count > 0 {
            tables.push(("field_map_slices", bytes(it.field_map_slices, productions)));
            tables.push(("field_map_entries", bytes(it.field_map_entries, slices)));
        }
        if external > 0 {
            let lex_modes = slice::from_raw_parts(it.lex_modes, states * modes);
            let last = lex_modes.chunks(modes).map(|mode| usize::from(mode[1])).max();
            tables.push((
                "scanner_states",
                bytes(it.scanner_states, external * (last.unwrap_or(0) + 1)),
            ));
        }
        if !is_old {
            let supertypes = slice::from_raw_parts(
                if it.supertype_count > 0 { it.supertype_symbols } else { ptr::dangling() },
                count(it.supertype_count),
            );
            let lex_modes = slice::from_raw_parts(it.lex_modes, states * modes);
            let sets =
                lex_modes.chunks(modes).map(|mode| usize::from(mode[2])).max().unwrap_or(0) + 1;
            let longest = usize::from(it.max_reserved_word_set_size);
            tables.push(("name", CStr::from_ptr(it.name).to_bytes().to_vec()));
            tables.push(("version", it.metadata.to_vec()));
            tables.push(("reserved_words", bytes(it.reserved_words, sets * longest)));
            tables.push(("supertype_symbols", bytes(supertypes.as_ptr(), supertypes.len())));
            if let Some(last) = supertypes.iter().copied().map(usize::from).max() {
                let entries = ranges(it.supertype_map_slices, last + 1);
                tables.push(("supertype_map_slices", bytes(it.supertype_map_slices, last + 1)));
                tables.push(("supertype_map_entries", bytes(it.supertype_map_entries, entries)));
            }
        }
        tables
    }
}

#[expect(unsafe_code, reason = "as above")]
unsafe fn bytes<T>(table: *const T, count: usize) -> Vec<u8> {
    if count == 0 {
        return Vec::new();
    }
    assert!(table.is_aligned());
    // SAFETY: the caller knows how long it is.
    unsafe { slice::from_raw_parts(table.cast(), count * size_of::<T>()).to_vec() }
}

#[expect(unsafe_code, reason = "as above")]
unsafe fn names(names: *const *const c_char, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for at in 0..count {
        // SAFETY: the caller knows how many there are.
        let name = unsafe { *names.add(at) };
        if name.is_null() {
            bytes.extend(b"none\n");
        } else {
            // SAFETY: a name is text, and ends with 0.
            bytes.extend(unsafe { CStr::from_ptr(name) }.to_bytes());
            bytes.push(0);
        }
    }
    bytes
}

/// Up to the end of its last state.
#[expect(unsafe_code, reason = "as above")]
unsafe fn small_table(it: &Language, states: usize) -> Vec<u16> {
    // SAFETY: the map has a number for each state, from which on the table can be read as here.
    unsafe {
        let last = (0..states).map(|at| *it.small_parse_table_map.add(at)).max();
        let Some(last) = last else { return Vec::new() };
        let mut end = last as usize;
        let groups = *it.small_parse_table.add(end);
        end += 1;
        for _ in 0..groups {
            end += 2 + usize::from(*it.small_parse_table.add(end + 1));
        }
        slice::from_raw_parts(it.small_parse_table, end).to_vec()
    }
}

/// How many actions there are: up to the last that is named for a symbol that is a token.
#[expect(unsafe_code, reason = "as above")]
unsafe fn actions(it: &Language, small_table: &[u16]) -> usize {
    let (tokens, symbols) = (it.token_count as usize, it.symbol_count as usize);
    let mut last = 0;
    // SAFETY: it is as long as it says.
    let large =
        unsafe { slice::from_raw_parts(it.parse_table, it.large_state_count as usize * symbols) };
    for row in large.chunks(symbols) {
        last = row[..tokens].iter().copied().max().unwrap_or(0).max(last);
    }
    let mut at = 0;
    while let Some(groups) = small_table.get(at) {
        at += 1;
        for _ in 0..*groups {
            let symbols = usize::from(small_table[at + 1]);
            if small_table[at + 2..][..symbols].iter().any(|symbol| usize::from(*symbol) < tokens) {
                last = last.max(small_table[at]);
            }
            at += 2 + symbols;
        }
    }
    // SAFETY: what is named is there, and says how many follow.
    let following = unsafe { (*it.parse_actions.add(usize::from(last)))[0] };
    usize::from(last) + 1 + usize::from(following)
}

/// Where the last of them ends.
#[expect(unsafe_code, reason = "as above")]
unsafe fn ranges(slices: *const [u16; 2], count: usize) -> usize {
    if slices.is_null() {
        return 0;
    }
    // SAFETY: the caller knows how many there are.
    let slices = unsafe { slice::from_raw_parts(slices, count) };
    slices
        .iter()
        .map(|[first, length]| usize::from(*first) + usize::from(*length))
        .max()
        .unwrap_or(0)
}

/// Ends with 0; each has the number of those that follow.
#[expect(unsafe_code, reason = "as above")]
unsafe fn alias_map(map: *const u16) -> Vec<u8> {
    let mut end = 0;
    // SAFETY: it ends where it says.
    unsafe {
        while *map.add(end) != 0 {
            end += 2 + usize::from(*map.add(end + 1));
        }
        bytes(map, end + 1)
    }
}

#[test]
fn every_table_is_byte_for_byte_the_plain_one() {
    for (packed, plain, _) in super::pairs() {
        let grammar = packed.unpack();
        let name = packed.name();
        let (packed, plain) = (tables(grammar.as_ptr()), tables(plain.into_raw().cast()));
        assert_eq!(packed.len(), plain.len());
        let mut size = 0;
        for ((table, packed), (_, plain)) in packed.iter().zip(&plain) {
            assert!(packed == plain, "{name}: {table}");
            size += plain.len();
        }
        // What was compared is nearly all there is.
        let all = grammar.size() - grammar.size_of_tokens();
        assert!(size * 100 >= all * 98, "{name}: {size} of {all}");
    }
}
