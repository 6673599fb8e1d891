// SPDX-License-Identifier: Apache-2.0

// Package backstage proves with a real Backstage, a real browser and a real API server that the templates in integrations/backstage make what
// a person has filled in, and nothing else. It runs at night, with the tag backstage:
//
//	backstage=$(./hack/backstage); eval "$backstage"
//	programs=$(go -C hack run ./programs chromium etcd kubernetes); eval "$programs"
//	go test -tags=backstage -count=1 -timeout=60m -v ./test/backstage
//
// The objects that they make are in testdata. test/schema proves that the API server accepts these.
package backstage
