//! The policies of annotated functions that were not called yet.

/// Announces the policy of an annotated function to the program, so that a file can be compared with it before its first call.
#[cfg(feature = "config")]
#[doc(hidden)]
#[macro_export]
macro_rules! __announce {
    ($cell:ident) => {
        $crate::__private::inventory::submit! {
            $crate::__private::Announced(|| $cell.announce())
        }
    };
}

/// Only files are compared with it.
#[cfg(not(feature = "config"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __announce {
    ($cell:ident) => {};
}
