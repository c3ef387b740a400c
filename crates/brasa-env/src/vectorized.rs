//! Functions that are compiled once more for processors with wider vectors.

/// A function whose body is compiled for the instructions of AVX-512, of AVX2 and of any processor. A call runs what suits the processor.
///
/// The results are equal: a compiler neither reorders nor contracts operations. References that are arguments do not overlap, so that a compiler
/// vectorizes loops over them without a check.
macro_rules! vectorized {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident [$($generics:tt)*] ($($arg:ident: $type:ty),* $(,)?) -> $result:ty $body:block) => {
        $(#[$attribute])*
        #[allow(unsafe_code, reason = "functions with more instructions are called where the processor has them")]
        $visibility fn $name<$($generics)*>($($arg: $type),*) -> $result {
            #[inline(always)]
            fn plain<$($generics)*>($($arg: $type),*) -> $result $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                fn avx512<$($generics)*>($($arg: $type),*) -> $result {
                    plain($($arg),*)
                }

                #[target_feature(enable = "avx2")]
                fn avx2<$($generics)*>($($arg: $type),*) -> $result {
                    plain($($arg),*)
                }

                match $crate::vectorized::level() {
                    // SAFETY: the processor has the instructions.
                    $crate::vectorized::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: the processor has the instructions.
                    $crate::vectorized::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::vectorized::Level::Plain => {}
                }
            }
            plain($($arg),*)
        }
    };
}
pub(crate) use vectorized;

/// Instructions of the processor.
#[cfg(target_arch = "x86_64")]
pub(crate) enum Level {
    Avx512,
    Avx2,
    Plain,
}

/// The widest vectors of this processor.
#[cfg(target_arch = "x86_64")]
pub(crate) fn level() -> Level {
    let has_avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match has_avx512 {
        true => Level::Avx512,
        false if is_x86_feature_detected!("avx2") => Level::Avx2,
        false => Level::Plain,
    }
}
