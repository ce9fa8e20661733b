//! The other character sets: single-byte and East Asian sets with tables, and Unicode in units of
//! two or four bytes.

use super::coded::{self, CodedSet};
use super::single;
use super::wide::Wide;
use super::{ASCII_END, Charset, Encoding};
use crate::collation_id::CollationId;

/// A single-byte set: the index of its table, its default collation and its binary collation.
const fn single(
    name: &'static str,
    description: &'static str,
    table: usize,
    (default, binary): (u16, u16),
) -> Charset {
    Charset {
        name,
        description,
        default_collation: CollationId(default),
        binary_collation: CollationId(binary),
        max_len: 1,
        min_len: 1,
        ascii_end: ASCII_END,
        encoding: Encoding::Single(&single::ALL[table]),
    }
}

/// An East Asian set: its tables, its maximum character length, its default collation and its
/// binary collation.
const fn coded(
    name: &'static str,
    description: &'static str,
    tables: &'static CodedSet,
    max_len: u8,
    (default, binary): (u16, u16),
) -> Charset {
    Charset {
        name,
        description,
        default_collation: CollationId(default),
        binary_collation: CollationId(binary),
        max_len,
        min_len: 1,
        ascii_end: ASCII_END,
        encoding: Encoding::Coded(tables),
    }
}

const fn wide(
    name: &'static str,
    description: &'static str,
    encoding: Wide,
    max_len: u8,
    (default, binary): (u16, u16),
) -> Charset {
    Charset {
        name,
        description,
        default_collation: CollationId(default),
        binary_collation: CollationId(binary),
        max_len,
        min_len: encoding.unit() as u8,
        ascii_end: 0,
        encoding: Encoding::Wide(encoding),
    }
}

pub static ARMSCII8: Charset = single("armscii8", "ARMSCII-8 Armenian", 0, (32, 64));
pub static CP1250: Charset = single("cp1250", "Windows Central European", 1, (26, 66));
pub static CP1251: Charset = single("cp1251", "Windows Cyrillic", 2, (51, 50));
pub static CP1256: Charset = single("cp1256", "Windows Arabic", 3, (57, 67));
pub static CP1257: Charset = single("cp1257", "Windows Baltic", 4, (59, 58));
pub static CP850: Charset = single("cp850", "DOS West European", 5, (4, 80));
pub static CP852: Charset = single("cp852", "DOS Central European", 6, (40, 81));
pub static CP866: Charset = single("cp866", "DOS Russian", 7, (36, 68));
pub static DEC8: Charset = single("dec8", "DEC West European", 8, (3, 69));
pub static GEOSTD8: Charset = single("geostd8", "GEOSTD8 Georgian", 9, (92, 93));
pub static GREEK: Charset = single("greek", "ISO 8859-7 Greek", 10, (25, 70));
pub static HEBREW: Charset = single("hebrew", "ISO 8859-8 Hebrew", 11, (16, 71));
pub static HP8: Charset = single("hp8", "HP West European", 12, (6, 72));
pub static KEYBCS2: Charset = single("keybcs2", "DOS Kamenicky Czech-Slovak", 13, (37, 73));
pub static KOI8R: Charset = single("koi8r", "KOI8-R Relcom Russian", 14, (7, 74));
pub static KOI8U: Charset = single("koi8u", "KOI8-U Ukrainian", 15, (22, 75));
pub static LATIN2: Charset = single("latin2", "ISO 8859-2 Central European", 16, (9, 77));
pub static LATIN5: Charset = single("latin5", "ISO 8859-9 Turkish", 17, (30, 78));
pub static LATIN7: Charset = single("latin7", "ISO 8859-13 Baltic", 18, (41, 79));
pub static MACCE: Charset = single("macce", "Mac Central European", 19, (38, 43));
pub static MACROMAN: Charset = single("macroman", "Mac West European", 20, (39, 53));
/// Eleven of its bytes below 0x80 are other characters than in ASCII.
pub static SWE7: Charset = Charset {
    ascii_end: 0,
    ..single("swe7", "7bit Swedish", 21, (10, 82))
};
pub static TIS620: Charset = single("tis620", "TIS620 Thai", 22, (18, 89));

pub static UCS2: Charset = wide("ucs2", "UCS-2 Unicode", Wide::Ucs2, 2, (35, 90));
pub static UTF16: Charset = wide("utf16", "UTF-16 Unicode", Wide::Utf16, 4, (54, 55));
pub static UTF16LE: Charset = wide("utf16le", "UTF-16LE Unicode", Wide::Utf16Le, 4, (56, 62));
pub static UTF32: Charset = wide("utf32", "UTF-32 Unicode", Wide::Utf32, 4, (60, 61));

#[rustfmt::skip]
mod east_asia {
    use super::*;
    pub static BIG5: Charset = coded("big5", "Big5 Traditional Chinese", &coded::BIG5, 2, (1, 84));
    pub static CP932: Charset = coded("cp932", "SJIS for Windows Japanese", &coded::CP932, 2, (95, 96));
    pub static EUCJPMS: Charset = coded("eucjpms", "UJIS for Windows Japanese", &coded::EUCJPMS, 3, (97, 98));
    pub static EUCKR: Charset = coded("euckr", "EUC-KR Korean", &coded::EUCKR, 2, (19, 85));
    pub static GB18030: Charset = coded("gb18030", "China National Standard GB18030", &coded::GB18030, 4, (248, 249));
    pub static GB2312: Charset = coded("gb2312", "GB2312 Simplified Chinese", &coded::GB2312, 2, (24, 86));
    pub static GBK: Charset = coded("gbk", "GBK Simplified Chinese", &coded::GBK, 2, (28, 87));
    pub static SJIS: Charset = coded("sjis", "Shift-JIS Japanese", &coded::SJIS, 2, (13, 88));
    pub static UJIS: Charset = coded("ujis", "EUC-JP Japanese", &coded::UJIS, 3, (12, 91));
}
pub use east_asia::*;
