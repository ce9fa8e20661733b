//! Binding, points and ranges, cost, plan cache: a description, no engine handles.
