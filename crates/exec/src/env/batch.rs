//! Batches of rows between operators. A row has one image for each slot read so far.
//!
//! The rows of a scan stay in the engine's buffer, with a list of the selected ones. Joined rows
//! are copied into an arena. Both buffers are reused.

use nfold_engine::RowBatch;

/// The approximate number of rows in a batch.
pub(crate) const BATCH_ROWS: usize = 1024;

/// The maximum size of a batch in bytes, for long rows.
const BATCH_BYTES: usize = 1 << 20;

/// The memory in bytes that an operator keeps between executions.
pub(crate) const POOLED_BYTES: usize = 256 << 10;

/// A row image in the arena. If `len` is [`NULL_ROW`], all columns of the slot are NULL.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    len: u32,
}

const NULL_ROW: u32 = u32::MAX;

/// Some rows.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The rows that a scan has read, and the indexes of those that passed its conditions.
    pub read: RowBatch,
    pub selected: Vec<u32>,
    /// The number of images per row. 0: the rows are in `read` and `selected`.
    width: usize,
    arena: Vec<u8>,
    spans: Vec<Span>,
    /// The hidden row id of each image in `spans`, if the statement changes these rows; 0: none.
    ids: Vec<u64>,
    keeps_ids: bool,
}

impl Batch {
    /// A batch of rows with `width` images each; 0: for the rows of a scan.
    pub fn new(width: usize) -> Batch {
        Batch {
            width,
            ..Batch::default()
        }
    }

    /// As [`Self::new`]. With `keeps_ids`, joined rows keep the hidden row id of each image.
    pub fn with_ids(width: usize, keeps_ids: bool) -> Batch {
        Batch {
            keeps_ids: keeps_ids && width > 0,
            ..Batch::new(width)
        }
    }

    pub fn clear(&mut self) {
        self.read.clear();
        self.selected.clear();
        self.arena.clear();
        self.spans.clear();
        self.ids.clear();
    }

    /// The memory that it holds, approximately, in bytes.
    #[inline]
    pub fn memory(&self) -> usize {
        self.read.memory() + self.arena.capacity()
    }

    /// Frees unusually large buffers. Called between executions.
    pub fn release(&mut self) {
        if self.memory() > POOLED_BYTES {
            *self = Batch::with_ids(self.width, self.keeps_ids);
        }
    }

    pub fn len(&self) -> usize {
        let rows = self.spans.len().checked_div(self.width);
        rows.unwrap_or(self.selected.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the batch should be passed on before more joined rows are added.
    pub fn is_full(&self) -> bool {
        self.len() >= BATCH_ROWS || self.arena.len() >= BATCH_BYTES
    }

    /// The number of images per row.
    pub fn width(&self) -> usize {
        self.width.max(1)
    }

    /// Image number `n` of row `i`.
    #[inline]
    pub fn image(&self, i: usize, n: usize) -> Option<&[u8]> {
        if self.width == 0 {
            return Some(self.read.row(self.selected[i] as usize));
        }
        let span = self.spans[i * self.width + n];
        (span.len != NULL_ROW)
            .then(|| &self.arena[span.start as usize..(span.start + span.len) as usize])
    }

    /// The hidden row id beside image number `n` of row `i`.
    pub fn row_id(&self, i: usize, n: usize) -> Option<u64> {
        match self.width {
            0 => self.read.row_id(self.selected[i] as usize),
            width => self.ids.get(i * width + n).copied().filter(|&id| id != 0),
        }
    }

    /// The image of row `i` of a scan.
    #[inline]
    pub fn scanned(&self, i: usize) -> &[u8] {
        debug_assert_eq!(self.width, 0, "joined rows have several images");
        self.read.row(self.selected[i] as usize)
    }

    /// Whether every row that was read is selected.
    pub fn is_whole(&self) -> bool {
        self.width == 0 && self.selected.len() == self.read.len()
    }

    /// The images of the selected rows of a scan.
    pub fn images(&self) -> impl Iterator<Item = &[u8]> + Clone {
        debug_assert_eq!(self.width, 0, "joined rows have several images");
        self.selected.iter().map(|&i| self.read.row(i as usize))
    }

    /// Appends one image. A row is complete after `width` images.
    pub fn push_image(&mut self, image: Option<&[u8]>) {
        let start = self.arena.len() as u32;
        match image {
            None => self.spans.push(Span {
                start,
                len: NULL_ROW,
            }),
            Some(image) => {
                self.arena.extend_from_slice(image);
                self.spans.push(Span {
                    start,
                    len: image.len() as u32,
                });
            }
        }
    }

    /// As [`Self::push_image`], with the row's hidden row id if it has one.
    pub fn push_row(&mut self, image: Option<&[u8]>, id: Option<u64>) {
        self.push_image(image);
        if self.keeps_ids {
            self.ids.push(id.unwrap_or(0));
        }
    }

    /// Appends image `n` of row `i` of another batch.
    pub fn push_of(&mut self, other: &Batch, i: usize, n: usize) {
        self.push_image(other.image(i, n));
        if self.keeps_ids {
            self.ids.push(other.row_id(i, n).unwrap_or(0));
        }
    }

    /// Selects every row that was read.
    pub fn select_all(&mut self) {
        self.selected.clear();
        self.selected.extend(0..self.read.len() as u32);
    }
}
