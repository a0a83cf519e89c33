// Package console serves the console: the pages that show a site in a browser.
//
// The pages are files that are embedded in the program. They are built from the
// sources in src by "make console" (esbuild), and the result in dist is committed, so
// that the program needs only Go. The browser is one more client of NATS: the pages
// connect to the WebSocket listener of the site's NATS server with the user's own
// credentials, and send the requests that the command line sends. This server sees no
// credentials and answers no question about the site but where its NATS server is.
package console
