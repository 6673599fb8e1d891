// SPDX-License-Identifier: Apache-2.0

// Package s3 makes clients of S3 servers, of any make, from connections, and turns what they answer into failures that people can
// act on.
//
// It adds nothing to the protocol, which is the AWS SDK's. What it adds is suspicion: an answer that an S3 server does not give
// (the page of a proxy, half a document, nothing at all) is an error and never an empty bucket.
package s3
