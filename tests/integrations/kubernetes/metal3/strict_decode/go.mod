module strictdecode

go 1.25.0

require (
	github.com/metal3-io/ip-address-manager/api v1.13.1
	k8s.io/apimachinery v0.35.6
)
