//! A command to a server: a text, or an execution of a prepared template with its values.

use nfold_protocol::consts::{column_type as ty, com};
use nfold_protocol::frame::{begin_packet, end_packet};
use nfold_protocol::lenenc::put_bytes;

/// A parameter value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Param<'a> {
    Null,
    Int(i64),
    UInt(u64),
    Double(f64),
    /// A string in the connection's character set (utf8mb4).
    Bytes(&'a [u8]),
}

/// The next command of a connection. A source fills it in place, and its buffers are reused for
/// every command.
///
/// ```
/// # use nfold_lab::client::{Command, Param};
/// let mut command = Command::default();
/// command.text().extend_from_slice(b"SELECT 1");
/// let values = command.execute(0); // template 0 of the source
/// values.push(Param::Int(7));
/// ```
#[derive(Debug, Default)]
pub struct Command {
    text: Vec<u8>,
    template: Option<u32>,
    values: Values,
    /// Whether the next command belongs to the same event, such as a transaction of a workload.
    pub more: bool,
}

/// The parameters of an execution, encoded as they are added.
#[derive(Debug, Default)]
pub struct Values {
    types: Vec<u8>,
    nulls: Vec<u8>,
    bytes: Vec<u8>,
    count: usize,
}

impl Command {
    /// Makes this a text command (COM_QUERY) and returns the empty buffer for the text.
    pub fn text(&mut self) -> &mut Vec<u8> {
        self.template = None;
        self.text.clear();
        &mut self.text
    }

    /// Makes this an execution of a template of the source, and returns the empty list for its
    /// values.
    pub fn execute(&mut self, template: u32) -> &mut Values {
        self.template = Some(template);
        self.values.clear();
        &mut self.values
    }

    /// The template to execute, or `None` for a text.
    pub fn template(&self) -> Option<u32> {
        self.template
    }

    /// The number of values added.
    pub fn value_count(&self) -> usize {
        self.values.count
    }

    /// Appends the packet of a text command.
    pub(crate) fn encode_text(&self, out: &mut Vec<u8>) {
        packet(out, com::QUERY, |out| out.extend_from_slice(&self.text));
    }

    /// Appends the packet that executes the server's statement `id`.
    pub(super) fn encode_execute(&self, id: u32, out: &mut Vec<u8>) {
        packet(out, com::STMT_EXECUTE, |out| {
            out.extend_from_slice(&id.to_le_bytes());
            out.push(0); // No cursor.
            out.extend_from_slice(&1u32.to_le_bytes());
            if self.values.count > 0 {
                out.extend_from_slice(&self.values.nulls);
                out.push(1);
                out.extend_from_slice(&self.values.types);
                out.extend_from_slice(&self.values.bytes);
            }
        });
    }
}

impl Values {
    fn clear(&mut self) {
        self.types.clear();
        self.nulls.clear();
        self.bytes.clear();
        self.count = 0;
    }

    pub fn push(&mut self, value: Param<'_>) {
        if self.count.is_multiple_of(8) {
            self.nulls.push(0);
        }
        let (code, unsigned) = match value {
            Param::Null => {
                self.nulls[self.count / 8] |= 1 << (self.count % 8);
                (ty::NULL, 0)
            }
            Param::Int(v) => {
                self.bytes.extend_from_slice(&v.to_le_bytes());
                (ty::LONGLONG, 0)
            }
            Param::UInt(v) => {
                self.bytes.extend_from_slice(&v.to_le_bytes());
                (ty::LONGLONG, 0x80)
            }
            Param::Double(v) => {
                self.bytes.extend_from_slice(&v.to_le_bytes());
                (ty::DOUBLE, 0)
            }
            Param::Bytes(v) => {
                put_bytes(&mut self.bytes, v);
                (ty::VAR_STRING, 0)
            }
        };
        self.types.extend_from_slice(&[code, unsigned]);
        self.count += 1;
    }
}

/// Appends a packet with a command byte and the bytes that `body` appends.
pub(super) fn packet(out: &mut Vec<u8>, command: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = begin_packet(out);
    out.push(command);
    body(out);
    end_packet(out, start, &mut 0);
}
