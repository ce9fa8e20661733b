//! Prepared statements on the wire: the response to COM_STMT_PREPARE and the parameters of
//! COM_STMT_EXECUTE.
//!
//! Source: page_protocol_com_stmt_prepare, page_protocol_com_stmt_execute.
//!
//! # Picture
//! ```text
//! execute, after its header:
//!   [ null bitmap: (n+7)/8 | new types: 1 | n × (type, 0x80 = unsigned) if new | values ]
//! ```

use crate::consts::column_type as ty;
use crate::lenenc::{Malformed, Reader};

/// Appends the first payload of a successful prepare. Parameter and column definitions follow it.
pub fn encode_prepare_ok(
    out: &mut Vec<u8>,
    statement: u32,
    columns: u16,
    parameters: u16,
    warnings: u16,
) {
    out.push(0);
    out.extend_from_slice(&statement.to_le_bytes());
    out.extend_from_slice(&columns.to_le_bytes());
    out.extend_from_slice(&parameters.to_le_bytes());
    out.push(0);
    out.extend_from_slice(&warnings.to_le_bytes());
}

/// The type of a parameter as declared by the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterType {
    /// `column_type::*`
    pub code: u8,
    pub unsigned: bool,
}

/// The parameter block of one execution, split into its parts but not decoded.
#[derive(Debug, Clone, Copy)]
pub struct Parameters<'a> {
    nulls: &'a [u8],
    /// Two bytes per parameter, if the client sent types with this execution.
    types: Option<&'a [u8]>,
    values: &'a [u8],
    count: usize,
}

impl<'a> Parameters<'a> {
    /// Splits the block that follows the execute header. The statement has `count` parameters.
    pub fn parse(block: &'a [u8], count: u16) -> Result<Self, Malformed> {
        let count = usize::from(count);
        if count == 0 {
            return Ok(Parameters {
                nulls: &[],
                types: None,
                values: &[],
                count,
            });
        }
        let mut r = Reader::new(block);
        let nulls = r.take(count.div_ceil(8), "null bitmap")?;
        let types = match r.u8("new types flag")? {
            0 => None,
            _ => Some(r.take(2 * count, "parameter types")?),
        };
        Ok(Parameters {
            nulls,
            types,
            values: r.rest(),
            count,
        })
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether parameter `i` is NULL, and so has no value in the block. False beyond the last
    /// parameter.
    pub fn is_null(&self, i: usize) -> bool {
        self.nulls.get(i / 8).is_some_and(|b| b >> (i % 8) & 1 == 1)
    }

    /// The types sent with this execution. `None` means that the types of the previous execution
    /// still apply.
    pub fn types(&self) -> Option<impl Iterator<Item = ParameterType> + use<'a>> {
        let types = self.types?;
        Some(types.chunks_exact(2).map(|t| ParameterType {
            code: t[0],
            unsigned: t[1] & 0x80 != 0,
        }))
    }

    /// The encoded values in sequence. Each is read with [`next_value`].
    pub fn values(&self) -> Reader<'a> {
        Reader::new(self.values)
    }
}

/// Reads the bytes of one value of type `code`, without the length of a string. Integers, floats
/// and temporal values are as on the wire, little-endian. Temporal values keep their layout but
/// lose their length byte.
pub fn next_value<'a>(r: &mut Reader<'a>, code: u8) -> Result<&'a [u8], Malformed> {
    const WHAT: &str = "parameter value";
    match code {
        ty::NULL => Ok(&[]),
        ty::TINY => r.take(1, WHAT),
        ty::SHORT | ty::YEAR => r.take(2, WHAT),
        ty::LONG | ty::INT24 | ty::FLOAT => r.take(4, WHAT),
        ty::LONGLONG | ty::DOUBLE => r.take(8, WHAT),
        ty::DATE | ty::DATETIME | ty::TIMESTAMP => {
            let n = r.u8(WHAT)?;
            match n {
                0 | 4 | 7 | 11 => r.take(usize::from(n), WHAT),
                _ => Err(Malformed("length of a date parameter")),
            }
        }
        ty::TIME => {
            let n = r.u8(WHAT)?;
            match n {
                0 | 8 | 12 => r.take(usize::from(n), WHAT),
                _ => Err(Malformed("length of a time parameter")),
            }
        }
        ty::DECIMAL
        | ty::VARCHAR
        | ty::BIT
        | ty::JSON
        | ty::NEWDECIMAL
        | ty::ENUM
        | ty::SET
        | ty::TINY_BLOB
        | ty::MEDIUM_BLOB
        | ty::LONG_BLOB
        | ty::BLOB
        | ty::VAR_STRING
        | ty::STRING
        | ty::GEOMETRY => r.lenenc_bytes(WHAT),
        _ => Err(Malformed("parameter type")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parameters_split() {
        // (NULL, 'abc', 7u64) with types.
        let mut block = vec![0b001, 1, ty::LONG, 0, ty::VAR_STRING, 0, ty::LONGLONG, 0x80];
        block.extend_from_slice(b"\x03abc");
        block.extend_from_slice(&7u64.to_le_bytes());
        let p = Parameters::parse(&block, 3).unwrap();
        assert_eq!(
            (p.is_null(0), p.is_null(1), p.is_null(2), p.is_null(900)),
            (true, false, false, false)
        );
        let types: Vec<_> = p.types().unwrap().collect();
        assert_eq!(
            types[2],
            ParameterType {
                code: ty::LONGLONG,
                unsigned: true
            }
        );
        let mut v = p.values();
        assert_eq!(next_value(&mut v, ty::VAR_STRING), Ok(&b"abc"[..]));
        assert_eq!(
            next_value(&mut v, ty::LONGLONG),
            Ok(&7u64.to_le_bytes()[..])
        );
        assert!(v.is_empty());
        assert!(next_value(&mut v, ty::TINY).is_err());
    }

    #[test]
    fn later_executions_may_omit_the_types() {
        let p = Parameters::parse(&[0, 0, 5], 1).unwrap();
        assert!(p.types().is_none());
        assert_eq!(next_value(&mut p.values(), ty::TINY), Ok(&[5u8][..]));
        assert_eq!(Parameters::parse(&[], 0).unwrap().count(), 0);
        assert!(Parameters::parse(&[], 1).is_err());
    }

    proptest! {
        #[test]
        fn random_blocks_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), count in 0u16..40) {
            if let Ok(p) = Parameters::parse(&bytes, count) {
                let mut v = p.values();
                for (i, t) in p.types().into_iter().flatten().enumerate() {
                    if !p.is_null(i) && next_value(&mut v, t.code).is_err() {
                        break;
                    }
                }
            }
        }
    }
}
