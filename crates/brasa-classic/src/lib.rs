//! Classic control environments step for step as Gymnasium, and probe environments.
