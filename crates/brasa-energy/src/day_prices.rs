//! The cheap and the dear hours of a day, for controllers that shift energy by its price.

/// Part of a day's prices that is cheap, and that is dear.
const QUARTER: usize = 4;

/// The limits of the cheap and of the dear prices of a day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DayPrices {
    pub(crate) cheap_per_kwh: f64,
    dear_per_kwh: f64,
    /// Whether at most a quarter of the day is cheap, so that no cheap hour can be waited for.
    pub(crate) cheap_is_scarce: bool,
}

/// How a price compares with the others of its day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// The lowest quarter of the day's prices, or the only price.
    Cheap,
    Middle,
    /// The highest quarter of the day's prices.
    Dear,
}

impl DayPrices {
    /// The limits of the prices of a day at equal periods.
    ///
    /// They are the quartiles. Where both are one price that most periods share, they are the next price below and above it:
    /// five cheap hours stay cheap, and five dear hours stay dear.
    pub(crate) fn of(prices: &[f64]) -> Self {
        let mut sorted = prices.to_vec();
        sorted.sort_by(f64::total_cmp);
        let quarter = sorted.len().div_ceil(QUARTER);
        let (low, high) = (sorted[quarter - 1], sorted[sorted.len() - quarter]);
        let between = |cheap_per_kwh: f64, dear_per_kwh: f64| {
            let n_cheap = sorted.iter().filter(|price| **price <= cheap_per_kwh).count();
            Self { cheap_per_kwh, dear_per_kwh, cheap_is_scarce: n_cheap <= quarter }
        };
        if low < high {
            return between(low, high);
        }
        let below = sorted.iter().rev().find(|price| **price < low);
        let above = sorted.iter().find(|price| **price > high);
        between(*below.unwrap_or(&low), *above.unwrap_or(&high))
    }

    /// Whether energy bought at the cheap prices is worth more at the dear ones, after the losses of a battery.
    pub(crate) fn spread_pays(&self, round_trip: f64) -> bool {
        self.dear_per_kwh * round_trip > self.cheap_per_kwh
    }

    pub(crate) fn level(&self, price: f64) -> Level {
        if price <= self.cheap_per_kwh {
            Level::Cheap
        } else if price >= self.dear_per_kwh {
            Level::Dear
        } else {
            Level::Middle
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_is_cheap_and_a_quarter_is_dear() {
        let prices: Vec<f64> = (0..24).map(f64::from).collect();
        let day = DayPrices::of(&prices);
        let n = |level| prices.iter().filter(|price| day.level(**price) == level).count();
        assert_eq!((n(Level::Cheap), n(Level::Middle), n(Level::Dear)), (6, 12, 6));
        assert_eq!(DayPrices::of(&[0.2; 24]).level(0.2), Level::Cheap);
        assert!(!DayPrices::of(&[0.2; 24]).spread_pays(1.0));
    }

    #[test]
    fn two_prices_are_cheap_and_dear_for_any_number_of_hours() {
        for n_cheap in 1..24 {
            let prices: Vec<f64> = (0..24).map(|hour| if hour < n_cheap { 0.09 } else { 0.30 }).collect();
            let day = DayPrices::of(&prices);
            assert_eq!((day.level(0.09), day.level(0.30)), (Level::Cheap, Level::Dear), "{n_cheap}");
            assert!(day.spread_pays(0.9), "{n_cheap}");
        }
    }

    #[test]
    fn a_price_of_most_hours_is_between_fewer_cheap_and_fewer_dear_hours() {
        let mut prices = vec![0.2; 24];
        (prices[3], prices[4], prices[19]) = (0.1, 0.1, 0.4);
        let day = DayPrices::of(&prices);
        assert_eq!([0.1, 0.2, 0.4].map(|price| day.level(price)), [Level::Cheap, Level::Middle, Level::Dear]);
    }
}
