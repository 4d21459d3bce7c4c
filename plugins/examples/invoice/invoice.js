// Makes an invoice, a page of HTML, of an order in JSON.
import { Permanent, config } from "jobhost";
import { html, raw } from "./html.js";
import style from "./style.css";

const seller = config("seller") ?? "Example Ltd";

export default function invoice(job) {
  const order = job.json();
  const lines = checked(order).map((item) => ({ ...item, amount: Math.round(item.quantity * cents(item.price)) }));
  const rates = [...new Set(lines.map((line) => line.tax))].sort((a, b) => a - b);
  const net = sum(lines);
  const taxes = rates.map((rate) => ({ rate, amount: Math.round(sum(lines.filter((line) => line.tax === rate)) * rate / 100) }));
  const money = (amount) => `${(amount / 100).toFixed(2)} ${order.currency ?? "EUR"}`;

  return String(html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Invoice ${order.number}</title>
<style>${raw(style)}</style>
<h1>Invoice ${order.number}</h1>
<p>${seller}, ${order.date}, due ${due(order)}</p>
<address>${order.customer.name}<br>${order.customer.address}</address>
<table>
<tr><th>Item<th>Quantity<th>Price<th>Amount
${lines.map((line) => html`<tr><td>${line.name}<td>${line.quantity}<td>${money(cents(line.price))}<td>${money(line.amount)}
`)}<tr class="sum"><td colspan="3">Net<td>${money(net)}
${taxes.map(({ rate, amount }) => html`<tr><td colspan="3">VAT ${rate} %<td>${money(amount)}
`)}<tr class="sum"><td colspan="3">Total<td>${money(net + sum(taxes))}
</table>
`);
}

const cents = (price) => Math.round(price * 100);
const sum = (list) => list.reduce((total, { amount }) => total + amount, 0);

// The date by which to pay, after so many days.
function due({ date, days = 14 }) {
  const day = new Date(date + "T00:00:00Z");
  day.setUTCDate(day.getUTCDate() + days);
  return day.toISOString().slice(0, 10);
}

// Returns the items, or says all that is wrong with the order: trying again would not help.
function checked(order) {
  const wrong = [];
  if (!order.number) wrong.push("number is missing");
  if (!/^\d{4}-\d\d-\d\d$/.test(order.date) || Number.isNaN(Date.parse(order.date))) wrong.push("date must be like 2026-11-22");
  if (!order.customer?.name) wrong.push("customer.name is missing");
  if (!order.items?.length) wrong.push("there are no items");
  order.items?.forEach((item, i) => {
    if (!item.name) wrong.push(`items[${i}].name is missing`);
    for (const key of ["quantity", "price", "tax"]) {
      if (!(item[key] >= 0)) wrong.push(`items[${i}].${key} must be a number from 0`);
    }
  });
  if (wrong.length) throw new Permanent(wrong.join("; "), { code: "bad_order", category: "validation", context: { wrong } });
  return order.items;
}
