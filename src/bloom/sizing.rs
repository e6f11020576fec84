//! How large a layer is.
