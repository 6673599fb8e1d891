// SPDX-License-Identifier: Apache-2.0

// Package outside starts services that live outside a cluster in production, for tests of the provider: an S3 server
// (S3), another with the behaviour of AWS (AWS), MLflow (MLflow), an API server to reconcile against (APIServer), and a portal (Backstage). A
// Proxy in front of any of them injects faults that a real server cannot produce on request.
//
//	s3 := outside.S3(t)
//	proxy := outside.Proxy(t, s3.Endpoint, s3.CA)
//	proxy.Fail(outside.Call("PUT /backups?versioning"), outside.Answer(503, "").Times(2))
//
// All servers listen only on the loopback address, all but the portal use TLS with an authority of the test, keep their data in a
// directory of the test, and end with it, also when the test panics. The Shared functions start a server once per test
// binary; Main, in its TestMain, stops them.
//
// The programs come from the cache that `make integration` fills and names in the environment (hack/programs). A
// missing program fails the test.
package outside
