export default (job) => {
  const order = job.json();
  order.total = order.items.reduce((sum, i) => sum + i.price * i.n, 0);
  return order;
};
