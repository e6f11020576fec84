//! False-positive rates.
