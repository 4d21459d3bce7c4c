export default (job) => "hello, " + job.text();
