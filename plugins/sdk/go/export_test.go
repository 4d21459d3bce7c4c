package jobhost

// FailText is what the host is told of an error.
var FailText = failText
