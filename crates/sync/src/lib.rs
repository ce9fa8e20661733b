//! Optimistic latch, racy page copies, epochs; the one place that picks std or loom.
