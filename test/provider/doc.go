// SPDX-License-Identifier: Apache-2.0

// Package provider holds tests that run the provider as a process, against a real API server, a real S3 server and a
// real MLflow: what happens after a kill, during outages, while nothing happens, and under attack. They have the build
// tag integration and run in make integration.
package provider
