//! The cheap and the dear hours of a day, for controllers that shift energy by its price.

/// Part of a day's prices that is cheap, and that is dear.
const QUARTER: usize = 4;

/// The limits of the cheap and of the dear prices of a day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DayPrices {
    pub(crate) cheap_per_kwh: f64,
    dear_per_kwh: f64,
}

/// How a price compares with the others of its day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// A quarter of the day's prices, or the one that they have in common.
    Cheap,
    Middle,
    /// Not cheap, and a quarter of the day's prices.
    Dear,
}

impl DayPrices {
    /// The limits of the prices of a day at equal periods.
    pub(crate) fn of(prices: &[f64]) -> Self {
        let mut sorted = prices.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self {
            cheap_per_kwh: sorted[sorted.len() / QUARTER],
            dear_per_kwh: sorted[sorted.len() - sorted.len().div_ceil(QUARTER)],
        }
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
        assert_eq!((n(Level::Cheap), n(Level::Middle), n(Level::Dear)), (7, 11, 6));
        // Two tariffs: five dear hours, the rest is cheap. One tariff: nothing is dear.
        let two: Vec<f64> = (0..24).map(|hour| if (18..23).contains(&hour) { 0.45 } else { 0.28 }).collect();
        let day = DayPrices::of(&two);
        assert_eq!((day.level(0.28), day.level(0.45)), (Level::Cheap, Level::Dear));
        assert_eq!(DayPrices::of(&[0.2; 24]).level(0.2), Level::Cheap);
    }
}
