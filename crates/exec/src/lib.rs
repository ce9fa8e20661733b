//! Plans compiled to operators over batches; expressions; rows to the wire.
