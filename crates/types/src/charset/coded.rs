//! East Asian character sets: ASCII, and characters of two to four bytes.
//!
//! `tools/collations/coded.py` has written the tables from a MySQL server's answers, and documents
//! their layout. They are frozen, because sort keys in indexes contain the weights. A set is
//! unpacked at its first use in a process.

use std::io::Read;
use std::sync::OnceLock;

use super::gb18030::{self, FourBytes, is_character};

static FILE: &[u8] = include_bytes!("tables/coded.bin");

/// Which bytes form characters.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum CharacterForm {
    Big5,
    Euckr,
    Gb18030,
    Gb2312,
    Gbk,
    /// sjis and cp932, which have half-width Katakana of one byte.
    Sjis,
    /// ujis and eucjpms, which have characters of three bytes.
    Ujis,
}

/// A character set.
#[derive(Debug)]
pub(crate) struct CodedSet {
    form: CharacterForm,
    section: usize,
    /// The set that this one's code points are stored relative to.
    base: Option<&'static CodedSet>,
    tables: OnceLock<Tables>,
}

const fn set(form: CharacterForm, section: usize, base: Option<&'static CodedSet>) -> CodedSet {
    CodedSet {
        form,
        section,
        base,
        tables: OnceLock::new(),
    }
}

pub(crate) static BIG5: CodedSet = set(CharacterForm::Big5, 0, None);
pub(crate) static CP932: CodedSet = set(CharacterForm::Sjis, 1, Some(&SJIS));
pub(crate) static EUCJPMS: CodedSet = set(CharacterForm::Ujis, 2, Some(&UJIS));
pub(crate) static EUCKR: CodedSet = set(CharacterForm::Euckr, 3, None);
/// Its tables are a file of their own.
pub(crate) static GB18030: CodedSet = set(CharacterForm::Gb18030, 0, None);
pub(crate) static GB2312: CodedSet = set(CharacterForm::Gb2312, 4, Some(&GBK));
pub(crate) static GBK: CodedSet = set(CharacterForm::Gbk, 5, None);
pub(crate) static SJIS: CodedSet = set(CharacterForm::Sjis, 6, None);
pub(crate) static UJIS: CodedSet = set(CharacterForm::Ujis, 7, None);

/// The tables of a set. The code of a character is the big-endian number of its bytes.
#[derive(Debug)]
pub(super) struct Tables {
    /// The code point of each two-byte code, followed by those of the three-byte codes that start
    /// with 8F; 0: none.
    code_points: Vec<u16>,
    /// The code of each code point, in ascending order.
    codes: Vec<(u32, u32)>,
    /// For each code with case: the codes of its lower-case and upper-case letters, in ascending
    /// order.
    cases: Vec<(u32, u32, u32)>,
    /// The weight of each ASCII byte in the non-binary collation.
    pub(super) ascii: [u8; 128],
    /// The weight of each two-byte code; empty if the code is the weight. In gb18030 the weight is
    /// the position in Pinyin order; 0: none.
    pub(super) weights: Vec<u16>,
    /// In gb18030.
    pub(super) four_bytes: Option<FourBytes>,
}

/// The index of a code in the tables. Three-byte codes follow those of two bytes.
fn place(code: u32) -> usize {
    let low = (code & 0xFFFF) as usize;
    if code > 0xFFFF { 0x1_0000 + low } else { low }
}

const KATAKANA: std::ops::RangeInclusive<u8> = 0xA1..=0xDF;
/// The code point of the Katakana byte 0xA1.
const FIRST_KATAKANA: u32 = 0xFF61;

impl CodedSet {
    /// Length of the character of several bytes at the front.
    pub(crate) fn multi_len(&self, bytes: &[u8]) -> Option<usize> {
        let [first, second] = *bytes.first_chunk()?;
        let whole = match self.form {
            CharacterForm::Big5 => {
                matches!(first, 0xA1..=0xF9) && matches!(second, 0x40..=0x7E | 0xA1..=0xFE)
            }
            CharacterForm::Euckr => {
                let seconds = matches!(second, 0x41..=0x5A | 0x61..=0x7A | 0x81..=0xFE);
                matches!(first, 0x81..=0xFE) && seconds
            }
            CharacterForm::Gb18030 if bytes.first_chunk().is_some_and(is_character) => {
                return Some(4);
            }
            CharacterForm::Gb2312 => matches!(first, 0xA1..=0xF7) && matches!(second, 0xA1..=0xFE),
            CharacterForm::Gbk | CharacterForm::Gb18030 => {
                matches!(first, 0x81..=0xFE) && matches!(second, 0x40..=0x7E | 0x80..=0xFE)
            }
            CharacterForm::Sjis => {
                let firsts = matches!(first, 0x81..=0x9F | 0xE0..=0xFC);
                firsts && matches!(second, 0x40..=0x7E | 0x80..=0xFC)
            }
            CharacterForm::Ujis if first == 0x8F => {
                let third = bytes.get(2)?;
                let whole = matches!(second, 0xA1..=0xFE) && matches!(third, 0xA1..=0xFE);
                return whole.then_some(3);
            }
            CharacterForm::Ujis if first == 0x8E => KATAKANA.contains(&second),
            CharacterForm::Ujis => matches!(first, 0xA1..=0xFE) && matches!(second, 0xA1..=0xFE),
        };
        whole.then_some(2)
    }

    /// Whether a backslash may be the second byte of a character.
    pub(crate) const fn hides_backslash(&self) -> bool {
        matches!(
            self.form,
            CharacterForm::Big5 | CharacterForm::Gb18030 | CharacterForm::Gbk | CharacterForm::Sjis
        )
    }

    /// Length of the well-formed character at the front.
    pub(crate) fn len(&self, bytes: &[u8]) -> Option<usize> {
        let first = *bytes.first()?;
        let single =
            first < 0x80 || (self.form == CharacterForm::Sjis && KATAKANA.contains(&first));
        if single {
            return Some(1);
        }
        self.multi_len(bytes)
    }

    /// The code of the first character and its length. A byte that starts no character is a code of
    /// its own.
    pub(crate) fn code(&self, bytes: &[u8]) -> Option<(u32, usize)> {
        let first = *bytes.first()?;
        let len = match first {
            0..0x80 => 1,
            _ => self.multi_len(bytes).unwrap_or(1),
        };
        let code = bytes[..len].iter().fold(0, |n, b| n << 8 | u32::from(*b));
        Some((code, len))
    }

    /// The character at the front, and its length.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Option<(char, usize)> {
        let len = self.len(bytes)?;
        let (code, _) = self.code(bytes)?;
        let code_point = match len {
            1 if code >= 0x80 => code - u32::from(*KATAKANA.start()) + FIRST_KATAKANA,
            1 => code,
            4 => self.four_bytes()?.decode(code)?,
            _ => match self.tables().code_points[place(code)] {
                0 => return None,
                code_point => u32::from(code_point),
            },
        };
        char::from_u32(code_point).map(|c| (c, len))
    }

    /// Appends a character. Returns false, and appends nothing, if the set lacks it.
    pub(crate) fn encode(&self, c: char, out: &mut Vec<u8>) -> bool {
        let wanted = u32::from(c);
        if wanted < 0x80 {
            out.push(wanted as u8);
            return true;
        }
        let katakana = wanted
            .checked_sub(FIRST_KATAKANA)
            .and_then(|n| u8::try_from(n).ok());
        if let (CharacterForm::Sjis, Some(n @ 0..=0x3E)) = (self.form, katakana) {
            out.push(KATAKANA.start() + n);
            return true;
        }
        let codes = &self.tables().codes;
        let Ok(at) = codes.binary_search_by_key(&wanted, |(code_point, _)| *code_point) else {
            let four = self.four_bytes();
            return four.is_some_and(|four| four.encode(wanted, out));
        };
        push_code(codes[at].1, out);
        true
    }

    /// Appends the string in lower or upper case.
    pub(crate) fn convert_case(&self, s: &[u8], upper: bool, out: &mut Vec<u8>) {
        let mut rest = s;
        while let Some((code, len)) = self.code(rest) {
            if len == 1 {
                let byte = rest[0];
                out.push(if upper {
                    byte.to_ascii_uppercase()
                } else {
                    byte.to_ascii_lowercase()
                });
            } else {
                let (small, great) = self.cases(code);
                push_code(if upper { great } else { small }, out);
            }
            rest = &rest[len..];
        }
    }

    /// The codes of the lower-case and upper-case letters of a multi-byte character.
    pub(super) fn cases(&self, code: u32) -> (u32, u32) {
        let cases = &self.tables().cases;
        let found = cases.binary_search_by_key(&code, |(code, ..)| *code);
        found.map_or((code, code), |at| (cases[at].1, cases[at].2))
    }

    /// Whether the set is gb18030, whose four-byte characters cover the rest of Unicode.
    pub(crate) fn has_four_bytes(&self) -> bool {
        self.form == CharacterForm::Gb18030
    }

    pub(super) fn four_bytes(&self) -> Option<&FourBytes> {
        match self.has_four_bytes() {
            true => self.tables().four_bytes.as_ref(),
            false => None,
        }
    }

    /// Whether two characters are equal in gb18030's order.
    pub(crate) fn same_weight(&self, a: char, b: char) -> bool {
        let weight = |c| {
            let mut bytes = Vec::new();
            self.encode(c, &mut bytes);
            let (code, len) = self.code(&bytes)?;
            match len {
                1 => Some(u32::from(self.byte_weight(bytes[0]))),
                _ => self.long_weight(code),
            }
        };
        weight(a) == weight(b)
    }

    /// Calls `push` with the UTF-8 bytes of each character, and 0xFF for other bytes.
    pub(crate) fn to_utf8(&self, bytes: &[u8], mut push: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (c, len) = self
                .decode(rest)
                .map_or((None, 1), |(c, len)| (Some(c), len));
            match c {
                Some(c) => push(c.encode_utf8(&mut [0; 4]).as_bytes()),
                None => push(&[0xFF]),
            }
            rest = &rest[len..];
        }
    }

    /// The weight of a single byte, whether or not it is a character.
    pub(crate) fn byte_weight(&self, byte: u8) -> u8 {
        let ascii = &self.tables().ascii;
        ascii.get(usize::from(byte)).copied().unwrap_or(byte)
    }

    /// Whether strings are compared by the weights of their bytes: in euckr, ASCII letters are
    /// case-insensitive even as the second byte of a character.
    pub(crate) fn compares_bytes(&self) -> bool {
        self.form == CharacterForm::Euckr
    }

    /// Whether strings are compared by the weights of two-byte characters. The weights of big5 are
    /// stroke counts, which only WEIGHT_STRING shows; MySQL compares codes.
    pub(crate) fn has_compared_weights(&self) -> bool {
        self.form != CharacterForm::Big5
    }

    /// The weight of a two-byte character, if it differs from its code.
    pub(crate) fn weight(&self, code: u32) -> Option<u16> {
        self.tables().weights.get(place(code)).copied()
    }

    fn tables(&self) -> &Tables {
        self.tables.get_or_init(|| {
            let tables = match self.has_four_bytes() {
                true => gb18030::tables(self),
                false => self.read(&unpack(self.section)),
            };
            tables.expect("the tables of character sets are whole")
        })
    }

    /// The codes of several bytes in ascending order, those of two before those of three.
    pub(super) fn all_codes(&self) -> impl Iterator<Item = u32> {
        let two = (0x8000..=0xFFFF_u32).filter(|code| {
            let bytes = code.to_be_bytes();
            self.multi_len(&bytes[2..]) == Some(2)
        });
        let three = (0x8F_8000..=0x8F_FFFF_u32).filter(|code| {
            let bytes = code.to_be_bytes();
            self.multi_len(&bytes[1..]) == Some(3)
        });
        two.chain(three)
    }

    fn read(&self, file: &[u8]) -> Option<Tables> {
        let mut file = Reader(file);
        let mut tables = Tables::new(self, self.base, &mut file)?;
        for _ in 0..file.number()? {
            let (code_point, code) = (file.number()?, file.number()?);
            tables.codes.retain(|(found, _)| *found != code_point);
            tables.codes.push((code_point, code));
        }
        tables.codes.sort_by_key(|(code_point, _)| *code_point);
        tables.read_cases(&mut file)?;
        tables.ascii = *file.take(128)?.first_chunk()?;
        let deltas = file.halves()?;
        if !deltas.is_empty() {
            tables.weights = vec![0; tables.code_points.len()];
            let mut last = 0_u16;
            for (code, delta) in self.all_codes().zip(&deltas) {
                last = last.wrapping_add(*delta);
                tables.weights[place(code)] = last;
            }
        }
        Some(tables)
    }
}

impl Tables {
    /// Reads the code points; those of `base` are added to them.
    pub(super) fn new(
        set: &CodedSet,
        base: Option<&'static CodedSet>,
        file: &mut Reader<'_>,
    ) -> Option<Tables> {
        let size = match set.form {
            CharacterForm::Ujis => 0x2_0000,
            _ => 0x1_0000,
        };
        let (mut code_points, mut codes) = (vec![0; size], Vec::new());
        let mut last = 0_u16;
        for (code, delta) in set.all_codes().zip(file.halves()?) {
            last = match base {
                Some(base) => base.tables().code_points[place(code)].wrapping_add(delta),
                None => last.wrapping_add(delta),
            };
            code_points[place(code)] = last;
            if last != 0 {
                codes.push((u32::from(last), code));
            }
        }
        // A code point with several codes is encoded as the first of them.
        codes.sort_by_key(|(code_point, _)| *code_point);
        codes.dedup_by_key(|(code_point, _)| *code_point);
        Some(Tables {
            code_points,
            codes,
            cases: Vec::new(),
            ascii: [0; 128],
            weights: Vec::new(),
            four_bytes: None,
        })
    }

    pub(super) fn read_cases(&mut self, file: &mut Reader<'_>) -> Option<()> {
        for _ in 0..file.number()? {
            let case = (file.number()?, file.number()?, file.number()?);
            self.cases.push(case);
        }
        Some(())
    }
}

pub(super) fn push_code(code: u32, out: &mut Vec<u8>) {
    let bytes = code.to_be_bytes();
    let start = bytes.iter().position(|b| *b != 0).unwrap_or(3);
    out.extend_from_slice(&bytes[start..]);
}

/// The bytes of a section.
fn unpack(section: usize) -> Vec<u8> {
    let offset = |n: usize| {
        let bytes = FILE[4 * n..]
            .first_chunk()
            .expect("the file has its offsets");
        u32::from_le_bytes(*bytes) as usize
    };
    unzip(&FILE[offset(section)..offset(section + 1)])
}

/// The bytes of a zlib stream.
pub(super) fn unzip(packed: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::ZlibDecoder::new(packed)
        .read_to_end(&mut out)
        .expect("the tables of character sets are whole");
    out
}

/// Reads a section from front to back.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(front)
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.take(4)?.first_chunk()?))
    }

    /// Their count, the high bytes of all, the low bytes of all.
    pub(super) fn halves(&mut self) -> Option<Vec<u16>> {
        let count = self.number()? as usize;
        let (high, low) = (self.take(count)?, self.take(count)?);
        let both = high.iter().zip(low);
        Some(
            both.map(|(high, low)| u16::from_be_bytes([*high, *low]))
                .collect(),
        )
    }
}
