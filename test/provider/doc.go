// SPDX-License-Identifier: Apache-2.0

// Package provider holds tests that run the provider as a process, against a
// real API server, a real S3 server and a real MLflow: what happens when it is
// killed, when they are down, when nothing happens, and when somebody means
// harm. They have the build tag integration and are run by make integration.
package provider
