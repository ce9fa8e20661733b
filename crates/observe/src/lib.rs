//! Sharded counters, histograms, wait sites.
