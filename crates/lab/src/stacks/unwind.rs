//! Converts registers and stack bytes to function names, with the unwind tables (`.eh_frame`) and
//! symbols of the process's files.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use super::ptrace::Snapshot;

/// The most frames of one stack.
const DEEPEST: usize = 192;

#[cfg(target_arch = "x86_64")]
type Native = framehop::x86_64::UnwinderX86_64<Vec<u8>>;
#[cfg(target_arch = "x86_64")]
type Cache = framehop::x86_64::CacheX86_64;
#[cfg(target_arch = "aarch64")]
type Native = framehop::aarch64::UnwinderAarch64<Vec<u8>>;
#[cfg(target_arch = "aarch64")]
type Cache = framehop::aarch64::CacheAarch64;

/// A file that is mapped into the process.
struct Mapped {
    range: Range<u64>,
    /// The number to subtract from an address to get the file's own address.
    bias: u64,
    name: String,
    symbols: Arc<Vec<Symbol>>,
}

struct Symbol {
    at: u64,
    /// 0 if unknown.
    size: u64,
    name: String,
}

/// The code of one process at the time of its creation.
pub struct Unwound {
    unwinder: Native,
    cache: Cache,
    mapped: Vec<Mapped>,
    names: HashMap<u64, Arc<str>>,
}

impl Unwound {
    /// Reads the files that are mapped executable into `pid`.
    pub fn of(pid: u32) -> std::io::Result<Unwound> {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let mut this = Unwound {
            unwinder: Native::new(),
            cache: Cache::new(),
            mapped: Vec::new(),
            names: HashMap::new(),
        };
        let mut files: HashMap<String, Arc<Vec<Symbol>>> = HashMap::new();
        for line in maps.lines() {
            if let Some((range, offset, path)) = mapping(line) {
                // Opened through the process's own root directory. If the file was replaced,
                // through the open mapping itself.
                let own = format!("/proc/{pid}/root{path}");
                let held = format!("/proc/{pid}/map_files/{:x}-{:x}", range.start, range.end);
                let Ok(bytes) = std::fs::read(&own).or_else(|_| std::fs::read(&held)) else {
                    continue;
                };
                this.add(range, offset, path, &bytes, &mut files);
            }
        }
        Ok(this)
    }

    fn add(
        &mut self,
        range: Range<u64>,
        offset: u64,
        path: &str,
        bytes: &[u8],
        files: &mut HashMap<String, Arc<Vec<Symbol>>>,
    ) {
        let Ok(file) = object::File::parse(bytes) else {
            return;
        };
        let segments = file.segments().map(|s| {
            let (from, len) = s.file_range();
            let executable = match s.flags() {
                object::SegmentFlags::Elf { p_flags, .. } => p_flags.0 & object::elf::PF_X.0 != 0,
                _ => true,
            };
            (from..from + len, s.address(), executable)
        });
        let Some(bias) = bias(range.start, offset, segments) else {
            return;
        };
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        let section = |wanted: &str| {
            let section = file.section_by_name(wanted)?;
            Some((
                section.address()..section.address() + section.size(),
                section.data().ok()?.to_vec(),
            ))
        };
        let (text, frame, header) = (
            section(".text"),
            section(".eh_frame"),
            section(".eh_frame_hdr"),
        );
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: text.as_ref().map(|t| t.0.clone()),
            text: text.map(|t| t.1),
            got_svma: section(".got").map(|s| s.0),
            eh_frame_svma: frame.as_ref().map(|f| f.0.clone()),
            eh_frame: frame.map(|f| f.1),
            eh_frame_hdr_svma: header.as_ref().map(|h| h.0.clone()),
            eh_frame_hdr: header.map(|h| h.1),
            ..Default::default()
        };
        self.unwinder
            .add_module(Module::new(name.clone(), range.clone(), bias, info));
        let symbols = files
            .entry(path.to_owned())
            .or_insert_with(|| Arc::new(symbols(&file)))
            .clone();
        self.mapped.push(Mapped {
            range,
            bias,
            name,
            symbols,
        });
    }

    /// The function names from the thread's start function to the leaf.
    pub fn names(&mut self, snapshot: &Snapshot) -> Vec<Arc<str>> {
        let (base, stack) = (snapshot.sp, &snapshot.stack);
        let mut read = |at: u64| -> Result<u64, ()> {
            let from = usize::try_from(at.checked_sub(base).ok_or(())?).map_err(|_| ())?;
            let word = stack.get(from..from.checked_add(8).ok_or(())?).ok_or(())?;
            Ok(u64::from_le_bytes(word.try_into().map_err(|_| ())?))
        };
        #[cfg(target_arch = "x86_64")]
        let registers =
            framehop::x86_64::UnwindRegsX86_64::new(snapshot.ip, snapshot.sp, snapshot.bp);
        #[cfg(target_arch = "aarch64")]
        let registers =
            framehop::aarch64::UnwindRegsAarch64::new(snapshot.lr, snapshot.sp, snapshot.bp);
        let mut addresses = Vec::new();
        let mut frames =
            self.unwinder
                .iter_frames(snapshot.ip, registers, &mut self.cache, &mut read);
        while let Ok(Some(frame)) = frames.next() {
            addresses.push(match frame {
                FrameAddress::InstructionPointer(at) => at,
                // The call instruction is before the return address.
                FrameAddress::ReturnAddress(at) => at.get() - 1,
            });
            if addresses.len() == DEEPEST {
                break;
            }
        }
        let mut names: Vec<Arc<str>> = addresses.into_iter().map(|at| self.name(at)).collect();
        names.reverse();
        names
    }

    fn name(&mut self, at: u64) -> Arc<str> {
        if let Some(name) = self.names.get(&at) {
            return name.clone();
        }
        let name: Arc<str> = self.find(at).into();
        self.names.insert(at, name.clone());
        name
    }

    fn find(&self, at: u64) -> String {
        let Some(file) = self.mapped.iter().find(|m| m.range.contains(&at)) else {
            return "[unknown]".into();
        };
        let own = at.wrapping_sub(file.bias);
        let before = file.symbols.partition_point(|s| s.at <= own);
        match before.checked_sub(1).map(|i| &file.symbols[i]) {
            Some(s) if s.size == 0 || own < s.at + s.size => demangle(&s.name),
            _ => format!("[{}]", file.name),
        }
    }
}

/// The bias of an executable mapping at `start` that shows the file from `offset` on. `segments`
/// contains (file offset, address, executable) of each segment.
fn bias(
    start: u64,
    offset: u64,
    segments: impl Iterator<Item = (Range<u64>, u64, bool)>,
) -> Option<u64> {
    // A mapping begins at a page boundary, a segment at any offset within the page. The page may
    // also contain the end of the previous segment, which is not executable.
    let (file, address, _) = segments
        .filter(|(_, _, executable)| *executable)
        .find(|(file, _, _)| (file.start & !0xfff..file.end).contains(&offset))?;
    Some(
        start
            .wrapping_sub(offset)
            .wrapping_add(file.start)
            .wrapping_sub(address),
    )
}

/// The address range, file offset and file name of an executable mapping.
fn mapping(line: &str) -> Option<(Range<u64>, u64, &str)> {
    let mut words = line.split_whitespace();
    let (range, rights, offset) = (words.next()?, words.next()?, words.next()?);
    let path = line.find('/').map(|at| &line[at..])?;
    if !rights.contains('x') {
        return None;
    }
    let (low, high) = range.split_once('-')?;
    let hex = |v: &str| u64::from_str_radix(v, 16).ok();
    Some((
        hex(low)?..hex(high)?,
        hex(offset)?,
        path.trim_end_matches(" (deleted)"),
    ))
}

/// The functions by address, of the file and of its separate debug file if that is installed. If
/// several have the same address, the alphabetically first name is used.
fn symbols(file: &object::File<'_>) -> Vec<Symbol> {
    let mut all = Vec::new();
    add_symbols(file, &mut all);
    let debug = file.build_id().ok().flatten().and_then(|id| {
        let hex: String = id.iter().map(|b| format!("{b:02x}")).collect();
        let path = format!(
            "/usr/lib/debug/.build-id/{}/{}.debug",
            hex.get(..2)?,
            hex.get(2..)?
        );
        std::fs::read(path).ok()
    });
    if let Some(bytes) = debug
        && let Ok(file) = object::File::parse(&*bytes)
    {
        add_symbols(&file, &mut all);
    }
    all.sort_by(|a, b| (a.at, &a.name).cmp(&(b.at, &b.name)));
    all.dedup_by(|b, a| a.at == b.at);
    all
}

fn add_symbols(file: &object::File<'_>, all: &mut Vec<Symbol>) {
    let functions = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|s| s.kind() == SymbolKind::Text && s.is_definition());
    all.extend(functions.filter_map(|s| {
        Some(Symbol {
            at: s.address(),
            size: s.size(),
            name: s.name().ok()?.to_owned(),
        })
    }));
}

/// Removes hashes and parameters. `;` separates frames in the output, so it must not occur in a
/// name.
fn demangle(name: &str) -> String {
    let plain = name.split("@@").next().unwrap_or(name);
    let text = match rustc_demangle::try_demangle(plain) {
        Ok(rust) => format!("{rust:#}"),
        Err(_) => cpp_demangle::Symbol::new(plain)
            .ok()
            .and_then(|s| {
                s.demangle_with_options(
                    &cpp_demangle::DemangleOptions::new()
                        .no_params()
                        .no_return_type(),
                )
                .ok()
            })
            .unwrap_or_else(|| plain.to_owned()),
    };
    text.replace(';', ":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executable_mappings_are_parsed() {
        let line = "55d0c0a00000-55d0c0b00000 r-xp 00010000 fe:00 131 /usr/sbin/mariadbd (deleted)";
        assert_eq!(
            mapping(line),
            Some((
                0x55d0_c0a0_0000..0x55d0_c0b0_0000,
                0x10000,
                "/usr/sbin/mariadbd"
            ))
        );
        for line in [
            "",
            "7f00-7f10 rw-p 0 0:0 0 /lib/x",
            "7f00-7f10 r-xp 0 0:0 0 [vdso]",
            "what ever x",
        ] {
            assert_eq!(mapping(line), None, "{line}");
        }
    }

    /// A layout by a linker that lets segments share a page of the file: the addresses of the code
    /// are one page beyond the file offsets.
    #[test]
    fn bias_uses_the_executable_segment() {
        let segments = || {
            [
                (0..0x4a_e15c, 0, false),
                (0x4a_e180..0xf6_e8f0, 0x4a_f180, true),
                (0xf6_e8f0..0x101_8770, 0xf7_08f0, false),
            ]
            .into_iter()
        };
        let start = 0x5555_0000_0000 + 0x4a_f000;
        assert_eq!(bias(start, 0x4a_e000, segments()), Some(0x5555_0000_0000));
        assert_eq!(bias(start, 0x200_0000, segments()), None);
    }

    #[test]
    fn names_are_demangled_without_hashes_and_parameters() {
        assert_eq!(
            demangle("_ZN4core3fmt5write17h0123456789abcdefE"),
            "core::fmt::write"
        );
        assert_eq!(
            demangle("_Z24btr_search_guess_on_hashP12dict_index_t"),
            "btr_search_guess_on_hash"
        );
        assert_eq!(demangle("epoll_wait@@GLIBC_2.3.2"), "epoll_wait");
    }
}
