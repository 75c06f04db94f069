(function(){var d=document,s=d.currentScript,l=location,n=navigator,q=d.referrer,p;
if(n.doNotTrack==1||window.doNotTrack==1||n.globalPrivacyControl)return;
if(!("local"in s.dataset)&&/^((.*\.)?localhost|127[.\d]+|\[::1]|)$/.test(l.hostname))return;
try{var g=localStorage,i="tally_ignore";if(l.hash=="#tally-ignore")g[i]=1;if(l.hash=="#tally-count")delete g[i];if(i in g)return}catch(e){}
var u=new URL("api/event",s.src).href,w=s.dataset.site||l.hostname;
function send(){if(p===l.pathname)return;p=l.pathname;var b=JSON.stringify({n:"pageview",u:l.href,d:w,r:q||null});q=0;
n.sendBeacon&&n.sendBeacon(u,b)||fetch(u,{method:"POST",body:b,keepalive:true,mode:"no-cors"}).catch(function(){})}
["pushState","replaceState"].forEach(function(k){var f=history[k];history[k]=function(){var r=f.apply(this,arguments);send();return r}});
addEventListener("popstate",send);addEventListener("pageshow",function(e){if(e.persisted)p=0,send()});
if(d.prerendering)d.addEventListener("prerenderingchange",send);else send()})();
