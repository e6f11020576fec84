//! Tests on a real redis-server.
