module example.com/outside

go 1.26.0

require github.com/jobhost/jobhost v0.0.0

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/golang-lru/v2 v2.0.7 // indirect
)

replace github.com/jobhost/jobhost => ../..
