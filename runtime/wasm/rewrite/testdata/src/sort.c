// Loops that branch on what they load: quicksort of n numbers.

enum { MOST = 100000 };
static int numbers[MOST];

static void sort(int *a, int low, int high) {
  if (low >= high)
    return;
  int pivot = a[low + (high - low) / 2], i = low, j = high;
  while (i <= j) {
    while (a[i] < pivot)
      i++;
    while (a[j] > pivot)
      j--;
    if (i <= j) {
      int swap = a[i];
      a[i++] = a[j];
      a[j--] = swap;
    }
  }
  sort(a, low, j);
  sort(a, i, high);
}

// run sorts n numbers and returns 1 if they are in order.
__attribute__((export_name("run"))) unsigned run(unsigned n) {
  unsigned random = 1;
  if (n > MOST)
    n = MOST;
  for (unsigned i = 0; i < n; i++) {
    random = random * 1664525 + 1013904223;
    numbers[i] = (int)(random >> 1);
  }
  sort(numbers, 0, (int)n - 1);
  for (unsigned i = 1; i < n; i++)
    if (numbers[i - 1] > numbers[i])
      return 0;
  return 1;
}
