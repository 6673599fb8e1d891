// SPDX-License-Identifier: Apache-2.0

// Package outside starts what lives outside a cluster in real life, for tests of the provider: an S3 server (S3), another that
// speaks the dialect of AWS (AWS), MLflow (MLflow), and an API server to reconcile against (APIServer). A Proxy before any of
// them makes the faults that a real server cannot be asked for.
//
//	s3 := outside.S3(t)
//	proxy := outside.Proxy(t, s3.Endpoint, s3.CA)
//	proxy.Fail(outside.Call("PUT /backups?versioning"), outside.Answer(503, "").Times(2))
//
// Everything listens on the loopback address only, has TLS with an authority made for the test, keeps its data in a folder of
// the test and ends with it, also when the test panics. The Shared functions start a server once for a test binary; Main, in
// its TestMain, stops them.
//
// The programs come from the cache that `make integration` fills and names in the environment (hack/programs). One that is
// missing fails the test.
package outside
