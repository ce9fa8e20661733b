//! Full-text search: the words of documents, searches, and the rank of a document.
//!
//! ```text
//! row change   columns ──▶ words ──▶ packed entries in the hidden column ──▶ entries of the index
//! search       text ──▶ query ──▶ program ──▶ rank of a row, from its packed entries
//!                                    │
//!                                    └──▶ ranges of the index that find all rows with a rank
//! ```
//! The ranks, and the quirks of searches, are those of InnoDB. The rank of a word in a document is
//! `frequency * idf * idf`, where idf is the decimal logarithm of the number of rows divided by the
//! number of documents with the word.
//!
//! Source: MySQL manual, "Full-Text Search Functions", "Boolean Full-Text Searches".

pub mod entries;
pub mod program;
pub mod query;
mod word_chars;
pub mod words;
