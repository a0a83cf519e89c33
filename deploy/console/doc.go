// Package console serves the console: the pages that show a site in a browser.
//
// The pages are files embedded in the program. "make console" (esbuild) builds them from the sources in src; the result
// in dist is committed, so that the program needs only Go. The browser is another client of NATS: the pages connect to
// the WebSocket listener of the site's NATS server with the user's own credentials, and send the same requests as the
// command line. The HTTP server of this package sees no credentials. It only tells the browser the address of the NATS
// server. On a site with single sign-on, package signon answers the requests below [SignOnPath].
package console
