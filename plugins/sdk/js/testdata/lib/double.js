export const double = (n) => 2 * n;
